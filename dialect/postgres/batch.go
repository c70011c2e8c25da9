package postgres

import (
	"fmt"
	"regexp"

	"github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// uuid is the one form in which the database gives ids, in which text and database sort alike.
var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func checkUUID(id string) error {
	if !uuid.MatchString(id) {
		return fmt.Errorf("message id %.50q is no UUID in lower-case letters", id)
	}
	return nil
}

// batch has the arguments of a settlement, which travel as arrays.
type batch dialect.Batch

func (b batch) texts(value func(dialect.Settling) string) pq.StringArray {
	return dialect.Column(dialect.Batch(b), value)
}

func (b batch) numbers(value func(dialect.Settling) int64) pq.Int64Array {
	return dialect.Column(dialect.Batch(b), value)
}

func (b batch) ids() pq.StringArray { return b.texts(func(r dialect.Settling) string { return r.ID }) }

func (b batch) leases() pq.Int64Array {
	return b.numbers(func(r dialect.Settling) int64 { return int64(r.Lease) })
}

// doneArguments are those of sqlSettleDone.
func (b batch) doneArguments() []any {
	return []any{b.ids(), b.leases(), b.texts(func(r dialect.Settling) string { return r.Result })}
}

// arguments are those of sqlSettle.
func (b batch) arguments(relayName string) []any {
	return []any{
		b.ids(),
		b.leases(),
		relayName,
		b.texts(func(r dialect.Settling) string { return string(r.What) }),
		b.texts(func(r dialect.Settling) string { return string(r.State) }),
		b.numbers(func(r dialect.Settling) int64 { return r.Delay.Microseconds() }),
		b.numbers(func(r dialect.Settling) int64 { return bit(r.Charge) }),
		b.numbers(func(r dialect.Settling) int64 { return lapsesNumber(r.Lapses) }),
		b.numbers(func(r dialect.Settling) int64 { return bit(r.MarkUnknown) }),
		b.texts(func(r dialect.Settling) string { return string(r.Reason) }),
		b.texts(func(r dialect.Settling) string { return r.ErrorClass }),
		b.texts(func(r dialect.Settling) string { return r.LastError }),
		b.texts(func(r dialect.Settling) string { return r.Result }),
		b.texts(func(r dialect.Settling) string { return r.Answer }),
		b.numbers(tookMicros),
		b.numbers(dialect.Settling.SinceMicros),
		b.numbers(func(r dialect.Settling) int64 { return int64(r.Status) }),
	}
}

// toldArguments are those of sqlSettleTold.
func (b batch) toldArguments(relayName string) []any {
	return append(b.arguments(relayName),
		b.texts(func(r dialect.Settling) string { return r.Emit.Type }),
		b.texts(func(r dialect.Settling) string { return r.Emit.AggregateType }))
}

// tookMicros is how long a send took that is to be recorded; -1: none is.
func tookMicros(r dialect.Settling) int64 {
	if !r.Recorded() {
		return -1
	}
	return r.Took.Microseconds()
}

func bit(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

func lapsesNumber(rule relay.LapseRule) int64 {
	switch rule {
	case relay.LapsesKeep:
		return 1
	case relay.LapsesAdd:
		return 2
	case relay.LapsesZero:
	}
	return 0
}
