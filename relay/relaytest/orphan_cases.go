package relaytest

import (
	"slices"
	"time"

	"github.com/outboxd/outboxd/relay"
)

func orphanCases() []storeCase {
	return []storeCase{
		{"are found in every page, and nothing else is moved", orphansPaged},
		{"become pending, due and unknown since they were created", orphanEffect},
		{"keep an unknown_since that is there", orphanKeepsUnknown},
		{"that are locked are left, and found on a later walk", orphanLocked},
		{"are not in an empty table", orphansNone},
	}
}

// walk looks at the whole table for orphans, page by page.
func (s *suite) walk(store relay.Reclaimer) (moved []string) {
	s.Helper()
	after := ""
	for range 1000 {
		found, next, err := store.Orphans(s.Context(), after)
		s.must("Orphans", err)
		moved = append(moved, s.movedOf(found)...)
		if next == "" {
			return moved
		}
		if next == after {
			s.Fatalf("Orphans after %s goes on after the same message", after)
		}
		after = next
	}
	s.Fatal("the walk for orphans finds no end")
	return nil
}

func orphansPaged(s *suite) {
	s.Insert(repeat(2400, Seed{Type: orders})...)
	quota := relay.Quota{RoutingKey: orders, Limit: 800}
	dropped, held := s.claim(quota), s.claim(quota)
	s.settle(allDone(dropped[:100])...)
	s.settle(relay.Release(dropped[100]))
	s.DropLease(dropped[0].Lease)
	s.sameIDs("the walk", s.walk(s.Store("b")), ids(dropped[101:])...)
	s.states(relay.InFlight, ids(held)...)
	s.sameIDs("the walk again", s.walk(s.Store("b")))
}

func orphanEffect(s *suite) {
	c := s.claimed(Seed{Attempts: 3, Lapses: 1, Age: time.Hour})
	before := s.row(c.ID)
	s.DropLease(c.Lease)
	s.sameIDs("the walk", s.walk(s.a), c.ID)
	after, want := s.row(c.ID), before
	if after.DueAt.IsZero() || after.DueAt.After(after.Now) {
		s.Errorf("due_at is %v, want it to be past", after.DueAt)
	}
	want.State, want.LeaseID, want.Lapses = relay.Pending, -1, 2
	want.DueAt, want.UnknownSince = after.DueAt, before.CreatedAt
	s.equal(after, want)
	if got := s.Attempts(c.ID); len(got) != 1 || got[0].Outcome != relay.WhatLapse {
		s.Errorf("outbox_attempt has %+v, want one lapse", got)
	}
	s.unsettled(s.a, allDone([]relay.Claim{c}), map[string]relay.Why{c.ID: relay.Lost})
	s.sameIDs("Claim", ids(s.claim(relay.Quota{RoutingKey: orders, ID: c.ID, Limit: 1})), c.ID)
}

func orphanKeepsUnknown(s *suite) {
	c := s.claimed(Seed{UnknownFor: time.Minute, Age: time.Hour})
	before := s.row(c.ID)
	s.DropLease(c.Lease)
	s.sameIDs("the walk", s.walk(s.a), c.ID)
	if after := s.row(c.ID); !after.UnknownSince.Equal(before.UnknownSince) {
		s.Errorf("unknown_since moved from %v to %v", before.UnknownSince, after.UnknownSince)
	}
}

func orphanLocked(s *suite) {
	s.Insert(repeat(3, Seed{Type: orders})...)
	claims := s.claim(ofOrders)
	s.DropLease(claims[0].Lease)
	unlock := s.Lock(claims[1].ID)
	s.sameIDs("the walk while locked", s.walk(s.a), claims[0].ID, claims[2].ID)
	unlock()
	s.sameIDs("the walk after unlock", s.walk(s.a), claims[1].ID)
}

func orphansNone(s *suite) {
	s.sameIDs("the walk", s.walk(s.a))
	s.Insert(Seed{Type: orders})
	s.sameIDs("the walk", slices.Clone(s.walk(s.a)))
}
