package dialect

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// pauseValue is the value of a pause in outbox_control.
type pauseValue struct {
	Operation string     `json:"operation"`
	Actor     string     `json:"actor"`
	Note      string     `json:"note,omitempty"`
	Until     *time.Time `json:"until,omitempty"` // by the database's clock; nil: without an end
}

// pauseRow is a pause as its row tells, beside the database's clock.
type pauseRow struct {
	Name, Value string
	Now         int64
}

// read gives the value, and what is left of the pause; a value that is not ours is a pause without an end.
func (r pauseRow) read() (v pauseValue, left time.Duration) {
	if json.Unmarshal([]byte(r.Value), &v) != nil || v.Until == nil {
		v.Until = nil
		return v, 0
	}
	return v, v.Until.Sub(time.UnixMicro(r.Now))
}

// Pauses implements relay.Operator.
func (o *Operator) Pauses(ctx context.Context) ([]relay.Pause, error) {
	var rows []pauseRow
	if err := o.Inspector.selectAll(ctx, "pauses", &rows, o.Inspector.Operations.Pauses); err != nil {
		return nil, err
	}
	pauses := make([]relay.Pause, 0, len(rows))
	for _, r := range rows {
		target, err := relay.ParseTarget(r.Name)
		if err != nil {
			continue // Somebody wrote into the table: no relay knows what it is about.
		}
		v, left := r.read()
		pauses = append(pauses, relay.Pause{Target: target, Operation: v.Operation, Endless: v.Until == nil, Left: left})
	}
	return pauses, nil
}

// steer applies a pause or a resume.
func (o *Operator) steer(ctx context.Context, q sqlx.ExtContext, op relay.Operation, s *standing) error {
	name := op.Order.Target().String()
	var rows []pauseRow
	if err := o.Inspector.selectOn(ctx, q, &rows, o.Inspector.Operations.Paused, name); err != nil {
		return err
	}
	if op.Op == relay.OpPause {
		s.affected = 1
		return o.pause(ctx, q, op, name, s.now)
	}
	if len(rows) > 0 && op.Order.Ended {
		if v, left := rows[0].read(); v.Until == nil || left > 0 {
			rows = nil // It was paused anew.
		}
	}
	if len(rows) == 0 {
		s.Add(relay.SkipNotPaused, 1)
		return nil
	}
	s.affected = 1
	return o.resume(ctx, q, op, name, s)
}

func (o *Operator) pause(ctx context.Context, q sqlx.ExtContext, op relay.Operation, name string, now int64) error {
	if op.DryRun {
		return nil
	}
	v := pauseValue{Operation: op.ID, Actor: op.Actor, Note: op.Note}
	if !op.Order.Indefinitely {
		until := time.UnixMicro(now).Add(time.Duration(op.Order.For)).UTC().Truncate(time.Microsecond) // as finely as databases tell the time
		v.Until = &until
	}
	value, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return o.Inspector.execOn(ctx, q, o.Inspector.Operations.Pause, name, string(value))
}

// resume ends a pause. What was turned back because of it waits for up to ten minutes: an operation of its own makes that
// due, a second later, when no relay turns back any more.
func (o *Operator) resume(ctx context.Context, q sqlx.ExtContext, op relay.Operation, name string, s *standing) error {
	if op.DryRun {
		return nil
	}
	if err := o.Inspector.execOn(ctx, q, o.Inspector.Operations.Resume, name); err != nil {
		return err
	}
	if op.Order.Type == "" {
		return nil
	}
	frees := relay.Operation{
		ID: newUUID(), Op: relay.OpRetryNow, Actor: op.Actor, Note: "resumes " + name,
		Order: relay.Order{Filter: relay.Filter{
			State: relay.Pending, ErrorClass: relay.ClassPaused, Type: op.Order.Type, SchemaVersion: op.Order.SchemaVersion,
		}},
	}
	s.Frees = frees.ID
	return o.Inspector.ask(ctx, q, o.Inspector.Operations.AskSoon, frees)
}

// Ask implements relay.Operator.
func (o *Operator) Ask(ctx context.Context, op relay.Operation) error {
	_, err := o.Inspector.Ask(ctx, op)
	if ClassOf(err) == Duplicate {
		return nil
	}
	return err
}
