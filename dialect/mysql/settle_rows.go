package mysql

import (
	"slices"
	"strings"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// resultBytes is what INSERT leaves room for in the column: a result that fills it grows nothing.
const resultBytes = 64

func padded(result string) string {
	return result + strings.Repeat(" ", max(0, resultBytes-len(result)))
}

// doneRows are those of sqlSettleDone.
func doneRows(b dialect.Batch) string {
	rows := dialect.Column(b, func(r dialect.Settling) [3]any { return [3]any{r.Seq, int64(r.Lease), padded(r.Result)} })
	return list[[3]any](rows).String()
}

// settleRows are those of sqlSettlements.
func settleRows(b dialect.Batch) string {
	return list[[17]any](dialect.Column(b, settleRow)).String()
}

func settleRow(r dialect.Settling) [17]any {
	charged, kept, added := 0, 0, 0
	if r.Charge {
		charged = 1
	}
	switch r.Lapses {
	case relay.LapsesKeep:
		kept = 1
	case relay.LapsesAdd:
		kept, added = 1, 1
	case relay.LapsesZero:
	}
	var unknown, took, status any
	if r.MarkUnknown {
		unknown = r.SinceMicros()
	}
	if r.Recorded() {
		took = r.Took.Microseconds()
	}
	if r.Status != 0 {
		status = r.Status
	}
	return [17]any{
		r.Seq, int64(r.Lease), r.State, r.Delay.Microseconds(), charged, kept, added, unknown, orNull(string(r.Reason)),
		orNull(r.ErrorClass), orNull(r.LastError), padded(r.Result), r.What, orNull(r.Answer), took, status,
		r.SinceMicros(),
	}
}

// tellRows are those of sqlTell.
func tellRows(b dialect.Batch) (rows list[[4]any]) {
	for _, r := range b {
		if r.Emit.Type != "" {
			rows = append(rows, [4]any{r.Seq, int64(r.Lease), r.Emit.Type, orNull(r.Emit.AggregateType)})
		}
	}
	return rows
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func recorded(b dialect.Batch) bool {
	return slices.ContainsFunc(b, func(r dialect.Settling) bool { return r.Recorded() })
}
