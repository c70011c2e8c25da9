package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// operationRow is an operation in a table: what fits a screen.
type operationRow struct {
	ID          string        `json:"id"`
	Op          string        `json:"op"`
	DryRun      bool          `json:"dry_run"`
	Filter      string        `json:"filter"`
	Actor       string        `json:"actor"`
	Note        *string       `json:"note"`
	RequestedAt dialect.Time  `json:"requested_at"`
	AppliedAt   *dialect.Time `json:"applied_at"`
	Affected    *int64        `json:"affected"`
	Outcome     string        `json:"outcome"`
}

func operationRows(found []dialect.Operation) []operationRow {
	out := make([]operationRow, 0, len(found))
	for _, o := range found {
		out = append(out, operationRow{
			o.ID, o.Op, o.DryRun, o.Filter, o.Actor, o.Note, o.RequestedAt, o.AppliedAt, o.Affected, outcomeOf(o),
		})
	}
	return out
}

// detailOf reads what a relay wrote of an operation; what somebody else wrote there tells nothing.
func detailOf(o dialect.Operation) (detail relay.Detail) {
	if o.Detail != nil && json.Unmarshal([]byte(*o.Detail), &detail) != nil {
		return relay.Detail{}
	}
	return detail
}

// outcomeOf says in words where an operation is, and what came of it.
func outcomeOf(o dialect.Operation) string {
	detail := detailOf(o)
	switch {
	case detail.Refused != "":
		return "refused: " + detail.Refused
	case o.AppliedAt == nil && o.Applier == nil:
		return "waits for a relay"
	case o.AppliedAt == nil:
		return "under way, by " + *o.Applier + skipped(detail.Skipped)
	case o.Applier == nil:
		return "ended by hand"
	case detail.Frees != "":
		return "applied by " + *o.Applier + "; what it frees becomes due by " + detail.Frees
	}
	return "applied by " + *o.Applier + skipped(detail.Skipped)
}

// explainLeft says why messages were left as they are, and what can be done about it.
func explainLeft(w io.Writer, o dialect.Operation) {
	left := detailOf(o).Skipped
	for _, why := range slices.Sorted(maps.Keys(left)) {
		fmt.Fprintf(w, "%s: %d %s: %s\n", o.ID, left[why], why, leftBecause(why))
	}
}

// leftBecause is what docs/operations.md says of it.
func leftBecause(why relay.Skip) string {
	switch why {
	case relay.SkipLate:
		return "came to its state, or was sent, after the operation was asked for; ask again if that is meant"
	case relay.SkipResolved:
		return "needs nothing more; its id or a reason in the filter takes it all the same"
	case relay.SkipChanged:
		return "somebody else corrected the payload since; look at it, and correct it again"
	case relay.SkipUnknown:
		return "an earlier send may have taken effect; look at the receiver, then ask again with --force"
	case relay.SkipDue:
		return "is due already"
	case relay.SkipDelayed:
		return "the application set its time; its id takes it all the same"
	case relay.SkipLocked:
		return "another session held its row; ask again"
	case relay.SkipRefused:
		return "a constraint or a trigger of the database refused the change; look at its log"
	case relay.SkipUnmatched:
		return "no message has such an id and fits the rest of the filter"
	case relay.SkipNotPaused:
		return "nothing of that name was paused"
	}
	return "is in that state, and the operation is for another"
}
