package relaytest

import (
	"context"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// pause is a row of outbox_control.
type pause struct {
	operation string
	until     time.Time // zero: without an end
}

// steer applies a pause or a resume.
func (t *Table) steer(o *operation, now time.Time) {
	target := o.Order.Target()
	paused, ok := t.pauses[target]
	switch {
	case o.Op == relay.OpPause:
		p := pause{operation: o.ID}
		if !o.Order.Indefinitely {
			p.until = now.Add(time.Duration(o.Order.For))
		}
		o.affected = 1
		if !o.DryRun {
			t.pauses[target] = p
		}
	case !ok || o.Order.Ended && (paused.until.IsZero() || paused.until.After(now)):
		o.Add(relay.SkipNotPaused, 1)
	default:
		o.affected = 1
		if !o.DryRun {
			delete(t.pauses, target)
			t.free(o, now)
		}
	}
}

// free asks for what a resume frees, a second later.
func (t *Table) free(resume *operation, now time.Time) {
	o := resume.Order
	if o.Type == "" {
		return
	}
	t.lastSeq++
	resume.Frees = timeOrderedUUID(now, t.lastSeq)
	t.order(relay.Operation{ID: resume.Frees, Op: relay.OpRetryNow, Actor: resume.Actor, Order: relay.Order{Filter: relay.Filter{
		State: relay.Pending, ErrorClass: relay.ClassPaused, Type: o.Type, SchemaVersion: o.SchemaVersion,
	}}}, now.Add(time.Second))
}

func (t *Table) order(o relay.Operation, requested time.Time) {
	filter, _ := o.Order.Text()
	t.operations = append(t.operations, &operation{Operation: o, filter: filter, requested: requested})
}

// Pauses implements relay.Operator.
func (s *Memory) Pauses(ctx context.Context) (pauses []relay.Pause, err error) {
	err = s.locked(ctx, func(t *Table, now time.Time) {
		for target, p := range t.pauses {
			told := relay.Pause{Target: target, Operation: p.operation, Endless: p.until.IsZero()}
			if !told.Endless {
				told.Left = p.until.Sub(now)
			}
			pauses = append(pauses, told)
		}
	})
	return pauses, err
}

// Ask implements relay.Operator.
func (s *Memory) Ask(ctx context.Context, o relay.Operation) error {
	return s.locked(ctx, func(t *Table, now time.Time) {
		if t.operation(o.ID) == nil {
			t.order(o, now)
		}
	})
}
