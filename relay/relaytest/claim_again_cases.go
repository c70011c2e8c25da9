package relaytest

import "github.com/outboxd/outboxd/relay"

func claimAgainCases() []storeCase {
	return []storeCase{
		{"answers the same, and takes no more", againSame},
		{"answers the same where nothing more is due", againNothingDue},
		{"answers what is still held after a settlement", againHeld},
		{"answers nothing when all was settled, and takes no more", againSettled},
		{"makes the claim if the first asking took nothing", againMakes},
		{"answers nothing once another relay took the lease", againTaken},
		{"asked twice at once takes the quota once", againAtOnce},
	}
}

func againSame(s *suite) {
	s.Insert(repeat(4, Seed{Type: orders})...)
	lease, two := newLease(), relay.Quota{RoutingKey: orders, Limit: 2}
	first := s.claimBy(s.a, lease, two)
	rows, leases := s.rows(ids(first)...), s.Leases()
	s.sameIDs("asked again", ids(s.claimBy(s.a, lease, two)), ids(first)...)
	s.unchanged(rows...)
	if again := s.Leases(); len(again) != 1 || !again[0].RenewedAt.Equal(leases[0].RenewedAt) {
		s.Fatalf("asking again changed the lease rows from %+v to %+v", leases, again)
	}
}

func againNothingDue(s *suite) {
	c := s.claimed(Seed{})
	s.sameIDs("asked again", ids(s.claimBy(s.a, c.Lease, ofOrders)), c.ID)
	one := relay.Quota{RoutingKey: orders, ID: c.ID, Limit: 1}
	s.sameIDs("asked again by id", ids(s.claimBy(s.a, c.Lease, one)), c.ID)
}

func againHeld(s *suite) {
	s.Insert(repeat(4, Seed{Type: orders})...)
	lease, three := newLease(), relay.Quota{RoutingKey: orders, Limit: 3}
	claims := s.claimBy(s.a, lease, three)
	s.settle(done(claims[0]), relay.Release(claims[1]))
	s.sameIDs("asked again", ids(s.claimBy(s.a, lease, three)), claims[2].ID)
}

func againSettled(s *suite) {
	c := s.claimed(Seed{})
	s.settle(done(c))
	other := s.Insert(Seed{Type: orders})
	s.sameIDs("asked again", ids(s.claimBy(s.a, c.Lease, ofOrders)))
	s.states(relay.Pending, other...)
}

func againMakes(s *suite) {
	lease := newLease()
	s.sameIDs("first asking", ids(s.claimBy(s.a, lease, ofOrders)))
	id := s.Insert(Seed{Type: orders})
	s.sameIDs("asked again", ids(s.claimBy(s.a, lease, ofOrders)), id...)
}

func againTaken(s *suite) {
	c := s.claimed(Seed{})
	s.take(s.Store("b"), c.Lease)
	other := s.Insert(Seed{Type: orders})
	before := s.rows(c.ID, other[0])
	s.sameIDs("asked again", ids(s.claimBy(s.a, c.Lease, ofOrders)))
	s.unchanged(before...)
}

func againAtOnce(s *suite) {
	all := s.Insert(repeat(50, Seed{Type: orders})...)
	lease, quota := newLease(), []relay.Quota{{RoutingKey: orders, Limit: 10}}
	asked := make(chan error)
	for range 2 {
		go func() {
			_, err := s.a.Claim(s.Context(), lease, long, quota)
			asked <- err
		}()
	}
	for range 2 {
		if err := <-asked; err != nil {
			s.Logf("asked at once: %v", err) // a fault is allowed, and asked again below
		}
	}
	held := s.claimBy(s.a, lease, quota...)
	if len(held) != 10 {
		s.Fatalf("the lease holds %d messages, want 10", len(held))
	}
	s.sameIDs("both claims", append(ids(s.claim(ofOrders)), ids(held)...), all...)
}
