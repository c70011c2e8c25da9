package relaytest

import (
	"slices"
	"strconv"
	"time"

	"github.com/outboxd/outboxd/relay"
)

func settleCases() []storeCase {
	return []storeCase{
		{"under a lease of before is lost, and changes nothing", settleStale},
		{"of a reclaimed message is lost, and changes nothing", settleReclaimed},
		{"of an absent message is lost", settleAbsent},
		{"twice is neither written again nor lost", settleTwice},
		{"after a release is neither written nor lost", settleReleased},
		{"under the relay's other lease is lost", settleOtherLease},
		{"of one message under its old and its new lease", settleOldAndNew},
		{"leaves a locked row for later, and writes the others", settleLocked},
		{"of a locked row under a lost lease is lost", settleLockedLost},
		{"of several locked rows in a large batch", settleManyLocked},
		{"of a row locked meanwhile knows when the send began", settleLockedSince},
		{"writes a batch of a thousand of every kind", settleThousand},
		{"of nothing does nothing", settleNothing},
		{"leaves lease rows as they are", settleLeaseRows},
		{"fails with an ended context, and writes nothing", settleEnded},
	}
}

// lost demands that each kind of settlement of c is lost and leaves no trace.
func (s *suite) lost(c relay.Claim) {
	s.Helper()
	before := s.row(c.ID)
	attempts := len(s.Attempts(c.ID))
	for _, e := range effects() {
		s.unsettled(s.a, []relay.Settlement{e.settle(c)}, map[string]relay.Why{c.ID: relay.Lost})
	}
	s.unchanged(before)
	if n := len(s.Attempts(c.ID)); n != attempts {
		s.Fatalf("lost settlements left %d rows in outbox_attempt", n-attempts)
	}
}

func settleStale(s *suite) {
	old := s.claimed(Seed{})
	s.settle(relay.Release(old))
	s.claim(ofOrders)
	s.lost(stalest(old))
}

// stalest is a claim whose counters make every line of the table possible.
func stalest(c relay.Claim) relay.Claim {
	c.Attempts, c.Lapses, c.Expires = 3, 4, true
	return c
}

func settleReclaimed(s *suite) {
	c := s.claimed(Seed{})
	s.reclaim(s.Store("b"), c.Lease)
	s.lost(stalest(c))
}

func settleAbsent(s *suite) {
	c := s.claimed(Seed{})
	absent := c
	absent.ID, absent.Seq = "01900000-0000-7000-8000-000000000000", c.Seq+1000
	s.unsettled(s.a, []relay.Settlement{done(absent), done(c)}, map[string]relay.Why{absent.ID: relay.Lost})
	s.states(relay.Finished, c.ID)
}

func settleTwice(s *suite) {
	c := s.claimed(Seed{})
	retry := relay.Decide(relay.Try{Claim: c, Outcome: relay.Retry("http_5xx", "no"), Policy: relay.Policy{Budget: 9, Base: long, Cap: long}})
	s.settle(retry)
	before := s.row(c.ID)
	s.settle(retry)
	s.settle(done(c))
	s.unchanged(before)
	if n := len(s.Attempts(c.ID)); n != 1 {
		s.Fatalf("outbox_attempt has %d rows, want 1", n)
	}
}

func settleReleased(s *suite) {
	c := s.claimed(Seed{})
	s.settle(relay.Release(c))
	before := s.row(c.ID)
	s.settle(done(c))
	s.unchanged(before)
}

func settleOtherLease(s *suite) {
	first, beside, second := s.crossed()
	crossed := first
	crossed.Lease = second.Lease
	before := s.row(first.ID)
	s.unsettled(s.a, allDone([]relay.Claim{second, crossed, beside}), map[string]relay.Why{first.ID: relay.Lost})
	s.unchanged(before)
	s.states(relay.Finished, second.ID, beside.ID)
	s.settle(done(first))
	s.states(relay.Finished, first.ID)
}

// crossed claims two messages under one lease and a third under another.
func (s *suite) crossed() (first, beside, second relay.Claim) {
	s.Helper()
	s.Insert(repeat(3, Seed{Type: orders})...)
	two := s.claim(relay.Quota{RoutingKey: orders, Limit: 2})
	return two[0], two[1], s.claim(ofOrders)[0]
}

func settleOldAndNew(s *suite) {
	old := s.claimed(Seed{})
	s.settle(relay.Release(old))
	fresh := s.claim(ofOrders)[0]
	s.unsettled(s.a, []relay.Settlement{dueAgain(old, "old")}, map[string]relay.Why{old.ID: relay.Lost})
	s.settle(done(fresh))
	s.lost(stalest(old))
	if r := s.row(old.ID); r.State != relay.Finished || r.LastError != "" || r.Attempts != 1 {
		s.Fatalf("message is %s with %d attempts and last error %q, want done with 1 and none", r.State, r.Attempts, r.LastError)
	}
}

func settleLocked(s *suite) {
	s.Insert(repeat(3, Seed{Type: orders})...)
	claims := s.claim(ofOrders)
	before := s.row(claims[1].ID)
	unlock := s.Lock(claims[1].ID)
	s.unsettled(s.a, allDone(claims), map[string]relay.Why{claims[1].ID: relay.Locked})
	s.states(relay.Finished, claims[0].ID, claims[2].ID)
	s.unsettled(s.a, []relay.Settlement{dueAgain(claims[1], "no")}, map[string]relay.Why{claims[1].ID: relay.Locked})
	unlock()
	s.unchanged(before)
	s.settle(done(claims[1]))
	s.states(relay.Finished, claims[1].ID)
}

func settleLockedLost(s *suite) {
	old := s.claimed(Seed{})
	s.settle(relay.Release(old))
	s.claim(ofOrders)
	unlock := s.Lock(old.ID)
	s.unsettled(s.a, []relay.Settlement{done(old)}, map[string]relay.Why{old.ID: relay.Lost})
	unlock()
}

// settleLockedSince writes as the engine does, again and again: a wait for the lock, in the statement or between two of them,
// is no time of the send.
func settleLockedSince(s *suite) {
	c := s.claimed(Seed{})
	before, began := s.row(c.ID).Now, time.Now().Add(-since)
	unlock, written := s.Lock(c.ID), make(chan error)
	go func() {
		settlement := decide(relay.Unknown("timeout", "no answer"), nil)(c)
		for {
			left, err := s.a.Settle(s.Context(), []relay.Settlement{settlement.Since(time.Since(began))})
			if err != nil || len(left) == 0 {
				written <- err
				return
			}
			<-time.After(10 * time.Millisecond)
		}
	}()
	locked := before
	for locked.Sub(before) < time.Second {
		locked = s.row(c.ID).Now
	}
	unlock()
	s.must("Settle", <-written)
	s.began("unknown_since", s.row(c.ID).UnknownSince, before, locked)
	s.began("started_at", s.Attempts(c.ID)[0].StartedAt, before, locked)
}

func settleManyLocked(s *suite) {
	s.Insert(repeat(200, Seed{Type: orders})...)
	claims := s.claim(ofOrders)
	want := map[string]relay.Why{}
	for i := 0; i < len(claims); i += 50 {
		defer s.Lock(claims[i].ID)()
		want[claims[i].ID] = relay.Locked
	}
	settlements := allDone(claims)
	for i := 0; i < len(claims); i += 20 {
		settlements[i] = dueAgain(claims[i], "no")
	}
	s.unsettled(s.a, settlements, want)
}

func settleThousand(s *suite) {
	const kinds = 4
	s.Insert(repeat(1000, Seed{Type: orders})...)
	claims := s.claim(ofOrders)
	if len(claims) != 1000 {
		s.Fatalf("Claim took %d messages, want 1000", len(claims))
	}
	settlements := make([]relay.Settlement, len(claims))
	for i, c := range claims {
		name := strconv.Itoa(i)
		settlements[i] = []relay.Settlement{
			relay.Decide(relay.Try{Claim: c, Outcome: relay.Done(name)}), dueAgain(c, name), relay.Release(c),
			relay.Decide(relay.Try{Claim: c, Outcome: relay.Fail(relay.Rejected, "invalid", name)}),
		}[i%kinds]
	}
	slices.Reverse(settlements)
	s.settle(settlements...)
	for i, c := range claims {
		s.checkNth(i, kinds, s.row(c.ID))
	}
}

// checkNth demands that the row has what the settlement of its own place wrote, not that of a neighbour.
func (s *suite) checkNth(i, kinds int, r Row) {
	s.Helper()
	name := strconv.Itoa(i)
	want := []Row{
		{State: relay.Finished, Result: name},
		{State: relay.Pending, LastError: name},
		{State: relay.Pending},
		{State: relay.Failed, Reason: relay.Rejected, LastError: name},
	}[i%kinds]
	got := Row{State: r.State, Reason: r.Reason, Result: r.Result, LastError: r.LastError}
	if got != want {
		s.Fatalf("message %d of the batch: %s", i, difference(got, want))
	}
}

func settleNothing(s *suite) {
	c := s.claimed(Seed{})
	before := s.row(c.ID)
	s.settle()
	s.unchanged(before)
}

func settleLeaseRows(s *suite) {
	c := s.claimed(Seed{})
	before := s.Leases()
	s.settle(done(c))
	if after := s.Leases(); len(after) != 1 || !after[0].RenewedAt.Equal(before[0].RenewedAt) {
		s.Fatalf("a settlement changed the lease rows from %+v to %+v", before, after)
	}
}

func settleEnded(s *suite) {
	c := s.claimed(Seed{})
	if _, err := s.a.Settle(cancelledContext(s.Context()), allDone([]relay.Claim{c})); err == nil {
		s.Fatal("Settle with an ended context has no error")
	}
	s.states(relay.InFlight, c.ID)
}
