package dialect

import (
	"cmp"
	"context"
	"fmt"

	"github.com/outboxd/outboxd/relay"
)

// Writer is how an engine writes settlements of one kind. Each method is one transaction.
type Writer interface {
	// Write writes a batch in the cheapest way and returns how many of it were written. It may wait for locks.
	Write(ctx context.Context, b Batch) (written int64, err error)
	// WriteAround writes what no other session holds.
	WriteAround(ctx context.Context, b Batch) (written int64, err error)
	// Fates tells, by id, how the messages of a batch are now; one that does not exist is left out.
	Fates(ctx context.Context, b Batch) (map[string]Fate, error)
}

// Fate is how a message is that a settlement was meant for.
type Fate struct {
	Lease    relay.LeaseID
	InFlight bool
}

// Settle writes a batch and tells what was not written. Where a lock is in the way it goes on around it. A text that the
// database refuses is written in plain characters: no outcome may be lost by what a destination said. What it refuses
// still, it refuses because of one row, such as one that somebody's trigger watches: the others are found by halves and
// written, and that row is left for later.
func Settle(ctx context.Context, w Writer, b Batch) ([]relay.Unsettled, error) {
	if len(b) == 0 {
		return nil, nil
	}
	texts := b
	written, err := w.Write(ctx, texts)
	if refused(err) {
		texts = b.Plain()
		written, err = w.Write(ctx, texts)
	}
	if class := ClassOf(err); class == Locked || class == Deadlock {
		written, err = w.WriteAround(ctx, texts)
	}
	if refused(err) && len(b) > 1 {
		first, err1 := Settle(ctx, w, b[:len(b)/2])
		second, err2 := Settle(ctx, w, b[len(b)/2:])
		return append(first, second...), cmp.Or(err1, err2)
	}
	if refused(err) {
		err = fmt.Errorf("message %s: %w", b[0].ID, err)
		return []relay.Unsettled{{Settlement: b[0].Settlement, Why: relay.Refused, Err: err}}, nil
	}
	if err != nil || written == int64(len(b)) {
		return nil, err
	}
	return unsettled(ctx, w, b)
}

// refused tells whether the database would give the same answer to the same rows for ever.
func refused(err error) bool {
	class := ClassOf(err)
	return class == Unreadable || class == Refused || class == Other
}

// unsettled tells what was not written, and why: in flight under our lease, so another session holds the row; or not ours.
// Ours and not in flight: it is written.
func unsettled(ctx context.Context, w Writer, b Batch) ([]relay.Unsettled, error) {
	fates, err := w.Fates(ctx, b)
	if err != nil {
		return nil, err
	}
	var unsettled []relay.Unsettled
	for _, r := range b {
		switch f, found := fates[r.ID]; {
		case !found || f.Lease != r.Lease:
			unsettled = append(unsettled, relay.Unsettled{Settlement: r.Settlement, Why: relay.Lost})
		case f.InFlight:
			unsettled = append(unsettled, relay.Unsettled{Settlement: r.Settlement, Why: relay.Locked})
		}
	}
	return unsettled, nil
}
