package relaytest

import (
	"slices"
	"sync"

	"github.com/outboxd/outboxd/relay"
)

func raceCases() []storeCase {
	return []storeCase{
		{"two settlements of one batch write each message once", raceSettlements},
		{"a settlement and a move end each message one way", raceMove},
		{"settlements over interleaved leases and a renewal do not stop each other", raceLeases},
	}
}

// atOnce runs functions in goroutines of their own, until all have returned.
func atOnce(functions ...func()) {
	var group sync.WaitGroup
	for _, f := range functions {
		group.Go(f)
	}
	group.Wait()
}

// settleAll settles in any goroutine, again what was locked, and gives the ids of what was lost.
func (s *suite) settleAll(store relay.Store, settlements []relay.Settlement) (lost []string) {
	for range 1000 {
		back, err := store.Settle(s.Context(), settlements)
		if err != nil {
			s.Errorf("Settle: %v", err)
			return lost
		}
		settlements = nil
		for _, u := range back {
			if u.Why == relay.Locked {
				settlements = append(settlements, u.Settlement)
			} else {
				lost = append(lost, u.Row().ID)
			}
		}
		if len(settlements) == 0 {
			return lost
		}
	}
	s.Error("a message stays locked, though no other session holds it")
	return lost
}

func raceSettlements(s *suite) {
	s.Insert(repeat(200, Seed{Type: orders})...)
	claims := s.claim(ofOrders)
	retries := make([]relay.Settlement, len(claims))
	for i, c := range claims {
		retries[i] = decide(relay.Retry("http_5xx", "no"), nil)(c)
	}
	backwards := slices.Clone(retries)
	slices.Reverse(backwards)
	atOnce(func() { s.settleAll(s.a, retries) }, func() { s.settleAll(s.a, backwards) })
	for _, c := range claims {
		if r, n := s.row(c.ID), len(s.Attempts(c.ID)); r.Attempts != 1 || n != 1 {
			s.Fatalf("message %s has %d attempts and %d rows in outbox_attempt, want 1 and 1", c.ID, r.Attempts, n)
		}
	}
}

func raceMove(s *suite) {
	s.Insert(repeat(200, Seed{Type: orders})...)
	claims, b := s.claim(ofOrders), s.Store("b")
	lease := claims[0].Lease
	was := s.take(b, lease)
	var lost, moved []string
	atOnce(func() {
		for part := range slices.Chunk(allDone(claims), 20) {
			lost = append(lost, s.settleAll(s.a, part)...)
		}
	}, func() {
		for left := true; left && len(moved) <= len(claims); {
			found, more, err := b.Move(s.Context(), lease, was)
			if err != nil {
				s.Errorf("Move: %v", err)
				return
			}
			left = more
			for _, m := range found {
				moved = append(moved, m.ID)
			}
		}
	})
	s.sameIDs("lost to the old owner", lost, moved...)
	s.states(relay.Pending, moved...)
	for _, c := range claims {
		if state := s.row(c.ID).State; state != relay.Finished && !slices.Contains(moved, c.ID) {
			s.Fatalf("message %s was not moved, and is %s", c.ID, state)
		}
	}
}

func raceLeases(s *suite) {
	all := s.Insert(repeat(300, Seed{Type: orders})...)
	var claims []relay.Claim
	var leases []relay.LeaseID
	for range 30 {
		claims = append(claims, s.claim(relay.Quota{RoutingKey: orders, Limit: 10})...)
		leases = append(leases, claims[len(claims)-1].Lease)
	}
	var work []func()
	for first := range 3 { // each takes every third message, so that all hold parts of all leases
		var part []relay.Settlement
		for i := first; i < len(claims); i += 3 {
			part = append(part, done(claims[i]))
		}
		work = append(work, func() {
			if lost := s.settleAll(s.a, part); len(lost) > 0 {
				s.Errorf("%d settlements were lost", len(lost))
			}
		})
	}
	work = append(work, func() {
		if lost, err := s.a.Renew(s.Context(), leases); err != nil || len(lost) > 0 {
			s.Errorf("Renew lost %v, %v", lost, err)
		}
	})
	atOnce(work...)
	s.states(relay.Finished, all...)
	s.finish(s.a, leases...)
	s.leaseIDs()
}
