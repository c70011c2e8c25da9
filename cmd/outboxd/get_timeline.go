package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// event is a line of a message's timeline.
type event struct {
	At      time.Time `json:"at"`
	After   string    `json:"after"` // since the event before
	What    string    `json:"event"`
	Attempt string    `json:"attempt"`
	Relay   string    `json:"relay"`
	Took    string    `json:"took"`
	Status  *int      `json:"status"`
	Error   string    `json:"error"`
	Answer  string    `json:"answer"`
}

// timeline is what is known of a message's lives, oldest first, each text harmless. A send that was done at once is known by
// its end alone.
func timeline(m dialect.Message, lease *dialect.Lease, sends []dialect.Attempt, operations []dialect.Operation) []event {
	events := []event{{At: m.CreatedAt.Time, What: "created"}}
	for _, a := range sends {
		events = append(events, sendEvent(a))
		if a.Life < m.Replays && a.Outcome == string(relay.WhatFail) {
			events = append(events, endOfLife(a))
		}
	}
	for _, o := range operations {
		events = append(events, event{At: o.AppliedAt.Time, What: joined(o.Op+" by "+o.Actor, firstLine(value(o.Note)))})
	}
	if lease != nil && m.State == string(relay.InFlight) {
		events = append(events, event{At: lease.ClaimedAt.Time, What: "claimed", Relay: lease.Relay})
	}
	for _, e := range []struct {
		at   *dialect.Time
		what event
	}{
		{m.DoneAt, event{What: "done", Answer: firstLine(value(m.Result))}},
		{m.FailedAt, event{What: "failed: " + value(m.Reason)}},
		{m.ResolvedAt, event{What: "resolved"}},
		{m.DueAt, event{What: "due"}},
	} {
		if e.at != nil {
			e.what.At = e.at.Time
			events = append(events, e.what)
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.At.Compare(b.At) })
	for i := range events {
		e := &events[i]
		if i > 0 {
			e.After = "+" + span(e.At.Sub(events[i-1].At))
		}
		for _, text := range []*string{&e.What, &e.Relay, &e.Error, &e.Answer} {
			*text = harmless(*text)
		}
	}
	return events
}

// sendEvent is a recorded send, or a lapse.
func sendEvent(a dialect.Attempt) event {
	attempt := fmt.Sprint(a.Attempt)
	if a.Life > 0 {
		attempt = fmt.Sprintf("%d of life %d", a.Attempt, a.Life+1)
	}
	return event{
		At: a.StartedAt.Time, What: a.Outcome, Attempt: attempt, Relay: a.Relay, Took: a.Duration.String(), Status: a.Status,
		Error: joined(value(a.ErrorClass), firstLine(value(a.Error))), Answer: beginning(value(a.Answer)),
	}
}

// endOfLife is how an earlier life ended: of the message itself a replay has cleared that.
func endOfLife(a dialect.Attempt) event {
	reason := relay.Rejected
	if value(a.ErrorClass) == string(relay.TooLarge) {
		reason = relay.TooLarge
	}
	return event{At: a.StartedAt.Add(time.Duration(a.Duration)), What: "failed: " + string(reason)}
}

// readTimeline reads what a timeline needs beside the message and its sends.
func readTimeline(ctx context.Context, db database, d details) ([]event, error) {
	var lease *dialect.Lease
	if d.State == string(relay.InFlight) {
		var err error
		if _, lease, err = db.Lease(ctx, d.LeaseID); err != nil {
			return nil, err
		}
	}
	operations, err := operationsOn(ctx, db, d.ID)
	return timeline(d.Message, lease, d.Sends, operations), err
}

// operationsLooked is how many operations are looked at for those on one message.
const operationsLooked = 100

// operationsOn are those of the last operations that named the message by its id, or had a correction of it, and changed all
// that they named.
func operationsOn(ctx context.Context, db operator, id string) (found []dialect.Operation, err error) {
	asked, err := db.Asked(ctx, false, operationsLooked)
	if err != nil {
		return nil, err
	}
	var corrections []string
	for _, o := range asked {
		if o.Op == string(relay.OpCorrect) {
			corrections = append(corrections, o.ID)
		}
	}
	corrected, err := db.Corrected(ctx, id, corrections)
	for _, o := range asked {
		named := slices.Contains(corrected, o.ID)
		if changedAll(o, func(order relay.Order) bool { return named || slices.Contains(order.IDs, id) }) {
			found = append(found, o)
		}
	}
	return found, err
}

// changedAll tells whether an operation is about the message, and changed all that it names.
func changedAll(o dialect.Operation, about func(relay.Order) bool) bool {
	var (
		order  relay.Order
		detail relay.Detail
	)
	if o.AppliedAt == nil || o.DryRun || o.Affected == nil || json.Unmarshal([]byte(o.Filter), &order) != nil || !about(order) {
		return false
	}
	if o.Op != string(relay.OpCorrect) {
		return *o.Affected == int64(len(order.IDs))
	}
	whole := o.Detail == nil || json.Unmarshal([]byte(*o.Detail), &detail) == nil && len(detail.Skipped) == 0
	return *o.Affected > 0 && order.Limit == 0 && whole
}
