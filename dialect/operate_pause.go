package dialect

import (
	"context"
	"encoding/json"
	"time"

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
func (s *stepping) steer(ctx context.Context) error {
	name := s.op.Order.Target().String()
	var rows []pauseRow
	if err := s.find(ctx, &rows, s.Operations.Paused, name); err != nil {
		return err
	}
	if s.op.Op == relay.OpPause {
		s.affected = 1
		return s.pause(ctx, name)
	}
	if len(rows) > 0 && s.op.Order.Ended {
		if v, left := rows[0].read(); v.Until == nil || left > 0 {
			rows = nil // It was paused anew.
		}
	}
	if len(rows) == 0 {
		s.Add(relay.SkipNotPaused, 1)
		return nil
	}
	s.affected = 1
	return s.resume(ctx, name)
}

func (s *stepping) pause(ctx context.Context, name string) error {
	if s.op.DryRun {
		return nil
	}
	v := pauseValue{Operation: s.op.ID, Actor: s.op.Actor, Note: s.op.Note}
	if !s.op.Order.Indefinitely {
		until := time.UnixMicro(s.now).Add(time.Duration(s.op.Order.For)).UTC().Truncate(time.Microsecond) // as finely as databases tell the time
		v.Until = &until
	}
	value, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.exec(ctx, s.Operations.Pause, name, string(value))
}

// resume ends a pause. What was turned back because of it waits for up to ten minutes: an operation of its own makes that
// due, a second later, when no relay turns back any more.
func (s *stepping) resume(ctx context.Context, name string) error {
	if s.op.DryRun {
		return nil
	}
	if err := s.exec(ctx, s.Operations.Resume, name); err != nil {
		return err
	}
	order := s.op.Order
	if order.Type == "" {
		return nil
	}
	s.Frees = NewUUID()
	return s.ask(ctx, s.q, s.Operations.AskSoon, relay.Operation{
		ID: s.Frees, Op: relay.OpRetryNow, Actor: s.op.Actor, Note: "resumes " + name,
		Order: relay.Order{Filter: relay.Filter{
			State: relay.Pending, ErrorClass: relay.ClassPaused, Type: order.Type, SchemaVersion: order.SchemaVersion,
		}},
	})
}

// Ask implements relay.Operator.
func (o *Operator) Ask(ctx context.Context, op relay.Operation) error {
	_, err := o.Inspector.Ask(ctx, op)
	if ClassOf(err) == Duplicate {
		return nil
	}
	return err
}
