package relaytest

import (
	"slices"
	"time"

	"github.com/outboxd/outboxd/relay"
)

func moveCases() []storeCase {
	return []storeCase{
		{"makes pending, at the front, and counts the lapse", moveEffect},
		{"keeps an unknown_since that is there", moveKeepsUnknown},
		{"leaves what was settled before it", moveAfterSettle},
		{"leaves what the old owner released, and another claimed", moveAfterRelease},
		{"leaves a locked row, says so, and takes it when it is free", moveLocked},
		{"touches no other lease", moveOtherLease},
		{"of a lease that is not ours moves nothing", moveNotOurs},
		{"makes a settlement under the old lease lost", moveThenSettle},
		{"of a lease that took two thousand", moveMany},
	}
}

// move moves what is under a lease that the store took.
func (s *suite) move(store relay.Reclaimer, lease relay.LeaseID, was string) (moved []string, left bool) {
	s.Helper()
	found, left, err := store.Move(s.Context(), lease, was)
	s.must("Move", err)
	return s.movedOf(found), left
}

// movedOf are the ids of messages that were moved, of which it has to be told under which routing key they are.
func (s *suite) movedOf(found []relay.Moved) (ids []string) {
	s.Helper()
	for _, m := range found {
		if want := s.row(m.ID).RoutingKey; m.RoutingKey != want {
			s.Fatalf("message %s of routing key %q was moved as one of %q", m.ID, want, m.RoutingKey)
		}
		ids = append(ids, m.ID)
	}
	return ids
}

// reclaim takes a lease and moves all that is under it.
func (s *suite) reclaim(store relay.Reclaimer, lease relay.LeaseID) (moved []string) {
	s.Helper()
	moved, left := s.move(store, lease, s.take(store, lease))
	if left {
		s.Fatal("Move left something, and nothing was locked")
	}
	return moved
}

func moveEffect(s *suite) {
	c, b := s.claimed(Seed{Attempts: 3, Lapses: 1}), s.Store("b")
	before, claimedAt := s.row(c.ID), s.lease(c.Lease).ClaimedAt
	front := s.Insert(Seed{Type: orders, Lapses: 2})[0]
	s.sameIDs("Move", s.reclaim(b, c.Lease), c.ID)

	after, want := s.row(c.ID), before
	s.between("due_at", after.DueAt, claimedAt, claimedAt)
	s.between("unknown_since", after.UnknownSince, claimedAt, claimedAt)
	want.State, want.LeaseID, want.Lapses = relay.Pending, -1, 2
	want.DueAt, want.UnknownSince = after.DueAt, after.UnknownSince
	s.equal(after, want)
	if after.DueAt.After(s.row(front).DueAt) {
		s.Error("the message is not before what was inserted after it was claimed")
	}

	attempts := s.Attempts(c.ID)
	if len(attempts) != 1 {
		s.Fatalf("outbox_attempt has %d rows, want 1", len(attempts))
	}
	got := attempts[0]
	s.between("started_at", got.StartedAt, claimedAt, claimedAt)
	s.between("started_at and duration", got.StartedAt.Add(got.Duration), before.Now, after.Now)
	lapse := Attempt{Attempt: 3, Relay: "a", StartedAt: got.StartedAt, Duration: got.Duration, Outcome: relay.WhatLapse}
	if d := difference(got, lapse); d != "" {
		s.Error(d)
	}
}

func moveKeepsUnknown(s *suite) {
	c := s.claimed(Seed{UnknownFor: time.Hour})
	before := s.row(c.ID)
	s.reclaim(s.Store("b"), c.Lease)
	if after := s.row(c.ID); !after.UnknownSince.Equal(before.UnknownSince) {
		s.Fatalf("unknown_since moved from %v to %v", before.UnknownSince, after.UnknownSince)
	}
}

func moveAfterSettle(s *suite) {
	s.Insert(repeat(4, Seed{Type: orders})...)
	claims, b := s.claim(ofOrders), s.Store("b")
	s.settle(done(claims[0]))
	was := s.take(b, claims[0].Lease)
	s.settle(done(claims[1]), dueAgain(claims[2], "no"))
	before := s.rows(ids(claims[:3])...)
	moved, left := s.move(b, claims[0].Lease, was)
	s.sameIDs("Move", moved, claims[3].ID)
	if left {
		s.Error("Move left something, and nothing was in flight any more")
	}
	s.unchanged(before...)
}

func moveAfterRelease(s *suite) {
	c, b := s.claimed(Seed{}), s.Store("b")
	was := s.take(b, c.Lease)
	s.settle(relay.Release(c))
	s.sameIDs("Claim", ids(s.claimBy(s.Store("c"), newLease(), ofOrders)), c.ID)
	before := s.row(c.ID)
	moved, left := s.move(b, c.Lease, was)
	s.sameIDs("Move", moved)
	if left {
		s.Error("Move left something that is under another lease")
	}
	s.unchanged(before)
}

func moveLocked(s *suite) {
	s.Insert(repeat(3, Seed{Type: orders})...)
	claims, b := s.claim(ofOrders), s.Store("b")
	was := s.take(b, claims[0].Lease)
	unlock := s.Lock(claims[1].ID)
	moved, left := s.move(b, claims[0].Lease, was)
	s.sameIDs("Move while locked", moved, claims[0].ID, claims[2].ID)
	if !left {
		s.Fatal("Move says that nothing is left, and one message is locked")
	}
	unlock()
	moved, left = s.move(b, claims[0].Lease, was)
	s.sameIDs("Move after unlock", moved, claims[1].ID)
	if left {
		s.Fatal("Move says that something is left")
	}
	s.finish(b, claims[0].Lease)
	s.leaseIDs()
	if got := s.Attempts(claims[0].ID); len(got) != 1 {
		s.Fatalf("moving twice left %d rows in outbox_attempt, want 1", len(got))
	}
}

func moveOtherLease(s *suite) {
	c, other := s.claimed(Seed{}), s.claimed(Seed{})
	before := s.row(other.ID)
	s.sameIDs("Move", s.reclaim(s.Store("b"), c.Lease), c.ID)
	s.unchanged(before)
}

func moveNotOurs(s *suite) {
	c, b := s.claimed(Seed{}), s.Store("b")
	was := s.take(b, c.Lease)
	s.take(s.Store("c"), c.Lease)
	before := s.row(c.ID)
	moved, _ := s.move(b, c.Lease, was)
	s.sameIDs("Move", moved)
	moved, _ = s.move(s.a, c.Lease, was)
	s.sameIDs("Move by the old owner", moved)
	s.unchanged(before)
}

func moveThenSettle(s *suite) {
	c := s.claimed(Seed{})
	s.reclaim(s.Store("b"), c.Lease)
	before := s.row(c.ID)
	s.unsettled(s.a, allDone([]relay.Claim{c}), map[string]relay.Why{c.ID: relay.Lost})
	s.unchanged(before)
}

func moveMany(s *suite) {
	all := s.Insert(repeat(2000, Seed{Type: orders})...)
	lease, b := newLease(), s.Store("b")
	s.claimBy(s.a, lease, relay.Quota{RoutingKey: orders, Limit: 2000})
	was := s.take(b, lease)
	var moved []string
	for left := true; left && len(moved) <= len(all); {
		var now []string
		if now, left = s.move(b, lease, was); left && len(now) == 0 {
			s.Fatal("Move says that something is left, and moves nothing")
		}
		moved = slices.Concat(moved, now)
	}
	s.sameIDs("Move", moved, all...)
}
