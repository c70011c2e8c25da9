package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// sentOnce is a done message, ready to be sent again, with what its first send came to.
type sentOnce struct {
	relay.Message
	timeout        time.Duration // of its policy
	done           dialect.Time
	result, answer string
	status         int // 0: it was not kept
}

// find reads the messages of a destination that were done lately, newest first. What was written before the window in which
// the receiver remembers its key is left out: it could rightly be done twice.
func (d *drill) find(ctx context.Context, destination string, window time.Duration) ([]sentOnce, error) {
	now, _, err := d.db.Lease(ctx, 0) // the database's clock
	if err != nil {
		return nil, err
	}
	status, err := d.db.Status(ctx)
	if err != nil {
		return nil, err
	}
	if of := status.Instance; of != "" && of != d.l.config.Instance {
		return nil, failf(exitNotAllowed, "the outbox belongs to %s, and this configuration to %s: nothing was sent; see outboxd instance --help",
			of, orElse(d.l.config.Instance, "none"))
	}
	if paused := pauseOf(status.Pauses, destination); paused != nil {
		return nil, failf(exitNotAllowed, "destination %s is paused: nothing was sent", destination)
	}
	since := now.Add(-d.since)
	filter := relay.Filter{State: relay.Finished, Since: &since}
	var found []sentOnce
	page := dialect.Page{}
	for range listPages {
		if page, err = d.db.List(ctx, filter, maxDrill, page.Next); err != nil {
			return nil, err
		}
		for _, listed := range page.Messages {
			if to := destinationOf(d.l.config.Routes, listed.RoutingKey); to != destination || now.Sub(listed.CreatedAt.Time) >= window {
				continue
			}
			if heldBack(status.Pauses, listed) {
				d.paused++
				continue
			}
			m, ok, err := d.read(ctx, listed.ID)
			if err != nil {
				return nil, err
			}
			if ok {
				m.StartBy = time.Now().Add(window - now.Sub(listed.CreatedAt.Time))
				found = append(found, m)
			}
			if len(found) == d.count {
				return found, nil
			}
		}
		if page.Next == "" {
			return found, nil
		}
	}
	fmt.Fprintf(d.stderr, "drill: only the newest messages were looked through; there may be more of destination %s\n", destination)
	return found, nil
}

// heldBack tells whether the message's routing key, type or version is paused.
func heldBack(pauses []dialect.PauseStatus, m dialect.Listed) bool {
	held := []string{
		relay.Target{RoutingKey: m.RoutingKey}.String(), relay.Target{Type: m.Type}.String(),
		relay.Target{Type: m.Type, SchemaVersion: m.SchemaVersion}.String(),
	}
	return slices.ContainsFunc(pauses, func(p dialect.PauseStatus) bool {
		return slices.Contains(held, p.Target) && (p.Left == nil || *p.Left > 0)
	})
}

// read makes of a row the message that the relay sent. ok is false where it is no longer done.
func (d *drill) read(ctx context.Context, id string) (m sentOnce, ok bool, err error) {
	row, attempts, err := d.db.Get(ctx, id)
	if err != nil || row.State != string(relay.Finished) {
		return m, false, err
	}
	payload, err := d.db.Payload(ctx, id)
	if err != nil {
		return m, false, err
	}
	m.Message = relay.Message{
		Claim: relay.Claim{
			ID: row.ID, Seq: row.Seq, RoutingKey: row.RoutingKey, Type: row.Type, SchemaVersion: row.SchemaVersion, Attempts: row.Attempts,
		},
		WireKey: orElse(value(row.SendID), row.ID), AggregateType: row.AggregateType, AggregateID: row.AggregateID, Payload: payload,
		ContentType: row.ContentType, Traceparent: value(row.Traceparent), CreatedAt: row.CreatedAt.Time, RawHeaders: row.Headers,
	}
	if err := m.ReadHeaders(); err != nil {
		return m, false, fmt.Errorf("message %s: %w", id, err)
	}
	m.result, m.done = value(row.Result), *row.DoneAt
	for _, a := range slices.Backward(attempts) {
		if a.Outcome == string(relay.KindDone) && a.Life == row.Replays {
			m.answer = value(a.Answer)
			if a.Status != nil {
				m.status = *a.Status
			}
			break
		}
	}
	r := &d.l.config.Routes[d.l.config.routeOf(row.RoutingKey)]
	m.timeout = d.l.sendPolicy(r, r.policyKey(row.Type)).Timeout
	return m, true, nil
}
