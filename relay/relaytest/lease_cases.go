package relaytest

import (
	"slices"

	"github.com/outboxd/outboxd/relay"
)

func leaseCases() []storeCase {
	return []storeCase{
		{"renew moves renewed_at and nothing else", renewMoves},
		{"renew names those that are gone or in other hands", renewLost},
		{"renew waits for no locked message", renewBesideLock},
		{"renew of nothing does nothing", renewNothing},
		{"finish deletes the rows of its relay", finishDeletes},
		{"finish leaves the lease of another relay", finishOthers},
		{"finish of what is gone, and of nothing, is no error", finishGone},
	}
}

// lease reads one lease row, which must be there.
func (s *suite) lease(id relay.LeaseID) LeaseRow {
	s.Helper()
	rows := s.Leases()
	i := slices.IndexFunc(rows, func(l LeaseRow) bool { return l.ID == id })
	if i < 0 {
		s.Fatalf("lease %d has no row", id)
	}
	return rows[i]
}

// renew renews leases of a store, of which just the lost ones must be named, in the order given.
func (s *suite) renew(store relay.Store, leases []relay.LeaseID, lost ...relay.LeaseID) {
	s.Helper()
	got, err := store.Renew(s.Context(), leases)
	s.must("Renew", err)
	if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(lost))) {
		s.Fatalf("Renew of %v lost %v, want %v", leases, got, lost)
	}
}

func (s *suite) finish(store relay.Store, leases ...relay.LeaseID) {
	s.Helper()
	s.must("Finish", store.Finish(s.Context(), leases))
}

// leaseIDs demands that just these leases have rows.
func (s *suite) leaseIDs(want ...relay.LeaseID) {
	s.Helper()
	var got []relay.LeaseID
	for _, l := range s.Leases() {
		got = append(got, l.ID)
	}
	if !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		s.Fatalf("lease rows are %v, want %v", got, want)
	}
}

func renewMoves(s *suite) {
	c, other := s.claimed(Seed{}), s.claimed(Seed{})
	message, before, beside := s.row(c.ID), s.lease(c.Lease), s.lease(other.Lease)
	s.renew(s.a, []relay.LeaseID{c.Lease})
	after := s.lease(c.Lease)
	s.between("renewed_at", after.RenewedAt, message.Now, s.row(c.ID).Now)
	before.RenewedAt = after.RenewedAt
	if d := difference(after, before); d != "" {
		s.Fatal(d)
	}
	if d := difference(s.lease(other.Lease), beside); d != "" {
		s.Fatalf("the lease beside: %s", d)
	}
	s.unchanged(message)
}

func renewLost(s *suite) {
	kept, dropped, taken, never := s.claimed(Seed{}).Lease, s.claimed(Seed{}).Lease, s.claimed(Seed{}).Lease, newLease()
	s.DropLease(dropped)
	b := s.Store("b")
	s.take(b, taken)
	before := s.lease(taken)
	s.renew(s.a, []relay.LeaseID{taken, kept, never, dropped}, taken, never, dropped)
	if d := difference(s.lease(taken), before); d != "" {
		s.Fatalf("the old owner's renewal: %s", d)
	}
	s.renew(b, []relay.LeaseID{taken, kept}, kept)
	s.renew(s.a, []relay.LeaseID{kept})
}

func renewBesideLock(s *suite) {
	c := s.claimed(Seed{})
	defer s.Lock(c.ID)()
	s.renew(s.a, []relay.LeaseID{c.Lease})
}

func renewNothing(s *suite) {
	c := s.claimed(Seed{})
	before := s.lease(c.Lease)
	s.renew(s.a, nil)
	if d := difference(s.lease(c.Lease), before); d != "" {
		s.Fatal(d)
	}
}

func finishDeletes(s *suite) {
	claims := []relay.Claim{s.claimed(Seed{}), s.claimed(Seed{}), s.claimed(Seed{})}
	s.settle(done(claims[0]), done(claims[1]))
	before := s.rows(ids(claims)...)
	s.finish(s.a, claims[0].Lease, claims[1].Lease)
	s.leaseIDs(claims[2].Lease)
	s.unchanged(before...)
}

func finishOthers(s *suite) {
	c := s.claimed(Seed{})
	s.settle(done(c))
	s.finish(s.Store("b"), c.Lease)
	s.leaseIDs(c.Lease)
}

func finishGone(s *suite) {
	c := s.claimed(Seed{})
	s.finish(s.a)
	s.leaseIDs(c.Lease)
	s.settle(done(c))
	s.finish(s.a, c.Lease, newLease())
	s.finish(s.a, c.Lease)
	s.leaseIDs()
}
