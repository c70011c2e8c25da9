package relay

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	maxBatch      = 500                    // messages a claim
	maxSettle     = 1000                   // settlements a statement
	settleWait    = 2 * time.Millisecond   // after the first of a batch; later ones never restart it
	settleWriters = 2                      // so that one batch is gathered while the other is written
	settleGate    = 4 * maxSettle          // so many outcomes waiting stop the claims: the database is slow
	lockedWait    = 500 * time.Millisecond // before a row that somebody else locks is tried again
)

// settling is a settlement on its way to the database, and whom it concerns.
type settling struct {
	Settlement
	claim Claim
	lease *lease
	dest  *destination
	since time.Time // of the claim
	began time.Time // of the send; zero where there was none

	outcome Kind // of its send; "" where there was none
	class   string
	took    time.Duration
}

// settler writes settlements in batches, by count or by age.
type settler struct {
	r       *Relay
	in      chan settling
	turn    chan struct{} // held by the writer that gathers: two at once would share a batch
	waiting atomic.Int64  // outcomes that are not written yet
}

func newSettler(r *Relay) *settler {
	return &settler{r: r, in: make(chan settling, settleGate), turn: make(chan struct{}, 1)}
}

// add puts a settlement into the queue. Where that is full and sends are cut off, the writers do not come along any more:
// the message lapses, and the stop goes on.
func (s *settler) add(it settling) {
	s.waiting.Add(1)
	select {
	case s.in <- it:
		return
	default:
	}
	select {
	case s.in <- it:
	case <-s.r.sending.Done():
		s.waiting.Add(-1)
	}
}

// congested tells that so many outcomes wait to be written that no more should be claimed.
func (s *settler) congested() bool { return s.waiting.Load() >= settleGate }

// run writes until ctx ends. It is one of settleWriters.
func (s *settler) run(ctx context.Context) {
	for {
		s.turn <- struct{}{}
		batch := s.gather(ctx)
		<-s.turn
		if len(batch) == 0 {
			return
		}
		for _, part := range apart(batch) {
			s.write(ctx, part)
		}
	}
}

// gather waits for a first settlement, and then for more until there are enough or a few milliseconds have passed.
func (s *settler) gather(ctx context.Context) []settling {
	var batch []settling
	select {
	case it := <-s.in:
		batch = append(batch, it)
	case <-ctx.Done():
		return nil
	}
	timer := time.NewTimer(settleWait)
	defer timer.Stop()
	for len(batch) < maxSettle {
		select {
		case it := <-s.in:
			batch = append(batch, it)
		case <-timer.C:
			return batch
		case <-ctx.Done():
			return batch
		}
	}
	return batch
}

// apart splits a batch so that no message is twice in one statement: after a reclaim by this very relay a message may
// have a late outcome under its old lease beside one under the new.
func apart(batch []settling) [][]settling {
	seen := make(map[string]bool, len(batch))
	first, rest := batch[:0:0], batch[:0:0]
	for _, it := range batch {
		if id := it.claim.ID; seen[id] {
			rest = append(rest, it)
		} else {
			seen[id] = true
			first = append(first, it)
		}
	}
	if len(rest) == 0 {
		return [][]settling{first}
	}
	return append([][]settling{first}, apart(rest)...)
}

// write writes one batch, again and again while the database is away: what was acknowledged must not be forgotten. What
// somebody else locks, or what the database refuses for one row alone, is tried later by itself, so that one row in
// somebody's psql or one that a trigger watches stops only itself.
func (s *settler) write(ctx context.Context, batch []settling) {
	settlements := make([]Settlement, len(batch))
	began := time.Now()
	var kept []Unsettled
	err := s.r.persist(ctx, "settle", func(ctx context.Context) (err error) {
		for i, it := range batch {
			settlements[i] = it.Since(time.Since(it.began))
		}
		kept, err = s.r.cfg.Database.Settle(ctx, settlements)
		return err
	})
	if err != nil {
		s.waiting.Add(-int64(len(batch))) // the relay ends; the messages lapse and are sent again
		return
	}
	why := make(map[string]Why, len(kept))
	for _, u := range kept {
		why[u.Row().ID] = u.Why
		if u.Why == Refused {
			s.r.faults.log(s.r.log, "settle", u.Err)
		}
	}
	events := make([]Event, 0, 2*len(batch)+1)
	for _, it := range batch {
		reason, unsettled := why[it.claim.ID]
		switch {
		case unsettled && reason != Lost:
			time.AfterFunc(lockedWait, func() { s.again(ctx, it) })
			continue
		case unsettled:
			s.r.log.Warn("lease lost", "id", it.claim.ID, "lease_id", it.claim.Lease, "outcome", it.Row().What)
			events = append(events, Event{Kind: EventLost, Destination: it.dest.Name, RoutingKey: it.claim.RoutingKey})
		default:
			events = s.r.told(events, it)
		}
		if it.outcome != "" {
			events = append(events, Event{
				Kind: EventSend, Destination: it.dest.Name, RoutingKey: it.claim.RoutingKey, Type: it.claim.Type,
				Outcome: it.outcome, Class: it.class, Took: it.took,
			})
		}
		s.waiting.Add(-1)
		s.r.close(it.lease, it.claim)
	}
	s.r.observe(append(events, Event{Kind: EventSettle, Count: len(batch) - len(kept), Took: time.Since(began)})...)
}

// again puts a settlement that could not be written yet back into the queue.
func (s *settler) again(ctx context.Context, it settling) {
	select {
	case s.in <- it:
	case <-ctx.Done():
		s.waiting.Add(-1)
	}
}

// told logs a message that failed, and reports one that became final or was turned back.
func (r *Relay) told(events []Event, it settling) []Event {
	row := it.Row()
	if row.State == Failed {
		r.log.Warn("message failed", "id", row.ID, "type", it.claim.Type, "destination", it.dest.Name, "reason", row.Reason,
			"error_class", row.ErrorClass, "last_error", row.LastError, "attempts", it.claim.Attempts+btoi(row.Charge))
	}
	e := Event{Destination: it.dest.Name, RoutingKey: it.claim.RoutingKey, Type: it.claim.Type, State: row.State, Reason: row.Reason}
	switch {
	case row.State != Pending:
		e.Kind, e.Age = EventFinal, it.claim.Age+time.Since(it.since)
	case row.What == WhatAdmit:
		e.Kind, e.Class = EventTurned, row.ErrorClass
		if e.Class == ClassNoPolicy && r.routing.Load().routeOf(it.claim.RoutingKey) != nil {
			e.Class = CauseVersion // a type of a route always has a policy
		}
	default:
		return events
	}
	return append(events, e)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
