package relaytest

import (
	"slices"
	"sync"
	"time"

	"github.com/outboxd/outboxd/relay"
)

func takeCases() []storeCase {
	return []storeCase{
		{"watch shows all leases, and again the same while nothing changes", watchAll},
		{"watch shows a renewal", watchRenewal},
		{"an unchanged lease is taken", takeUnchanged},
		{"a lease renewed meanwhile is not", takeRenewed},
		{"a lease finished meanwhile is not", takeFinished},
		{"a lease that another took is not", takeTaken},
		{"of several takers at once one wins", takeAtOnce},
		{"a relay takes a lease under its own name", takeOwn},
		{"the old owner's renewal and finish find nothing", takeOldOwner},
	}
}

// watch looks at one lease through a store; ok is false where it is not shown.
func (s *suite) watch(store relay.Reclaimer, id relay.LeaseID) (l relay.Lease, ok bool) {
	s.Helper()
	era, leases, err := store.Watch(s.Context())
	s.must("Watch", err)
	if era == "" {
		s.Fatal("Watch names no era")
	}
	if i := slices.IndexFunc(leases, func(l relay.Lease) bool { return l.ID == id }); i >= 0 {
		return leases[i], true
	}
	return relay.Lease{}, false
}

// take watches a lease and takes it at once, which must work.
func (s *suite) take(store relay.Reclaimer, id relay.LeaseID) (was string) {
	s.Helper()
	l, ok := s.watch(store, id)
	if !ok {
		s.Fatalf("Watch does not show lease %d", id)
	}
	was, ok, err := store.Take(s.Context(), l)
	s.must("Take", err)
	if !ok {
		s.Fatalf("Take of lease %d as it was watched does not work", id)
	}
	return was
}

// notTaken demands that a take of the lease as it was watched finds nothing and changes no lease row.
func (s *suite) notTaken(store relay.Reclaimer, l relay.Lease) {
	s.Helper()
	before := s.Leases()
	if was, ok, err := store.Take(s.Context(), l); err != nil || ok {
		s.Fatalf("Take gave %q, %v, %v, want ok to be false", was, ok, err)
	}
	for i, after := range s.Leases() {
		if d := difference(after, before[i]); d != "" {
			s.Fatalf("Take changed lease %d: %s", after.ID, d)
		}
	}
}

func watchAll(s *suite) {
	b := s.Store("b")
	if _, leases, err := b.Watch(s.Context()); err != nil || len(leases) != 0 {
		s.Fatalf("Watch of an empty table gave %v, %v", leases, err)
	}
	ours := s.claimed(Seed{}).Lease
	s.Insert(Seed{Type: orders})
	lease := newLease()
	_, err := b.Claim(s.Context(), lease, 2500*time.Millisecond, []relay.Quota{ofOrders})
	s.must("Claim", err)
	for id, want := range map[relay.LeaseID]relay.Lease{
		ours: {ID: ours, Relay: "a", Length: long}, lease: {ID: lease, Relay: "b", Length: 2500 * time.Millisecond},
	} {
		got, ok := s.watch(b, id)
		want.Renewed = got.Renewed
		if !ok || got != want || got.Renewed == "" {
			s.Errorf("Watch shows %+v, want %+v", got, want)
		}
		if again, _ := s.watch(b, id); again != got {
			s.Errorf("Watch shows %+v, and again %+v, though nothing changed", got, again)
		}
	}
}

func watchRenewal(s *suite) {
	c := s.claimed(Seed{})
	before, _ := s.watch(s.a, c.Lease)
	s.renew(s.a, []relay.LeaseID{c.Lease})
	if after, _ := s.watch(s.a, c.Lease); after.Renewed == before.Renewed || after.Renewed == "" {
		s.Fatalf("after a renewal Watch shows %q, and before it %q", after.Renewed, before.Renewed)
	}
}

func takeUnchanged(s *suite) {
	c, b := s.claimed(Seed{}), s.Store("b")
	message, before := s.row(c.ID), s.lease(c.Lease)
	if was := s.take(b, c.Lease); was != "a" {
		s.Fatalf("Take says that the lease was of %q, want a", was)
	}
	want := before
	want.Relay, want.RenewedAt = "b", s.lease(c.Lease).RenewedAt
	if d := difference(s.lease(c.Lease), want); d != "" {
		s.Fatal(d)
	}
	s.between("renewed_at", want.RenewedAt, message.Now, s.row(c.ID).Now)
	s.unchanged(message)
}

func takeRenewed(s *suite) {
	c, b := s.claimed(Seed{}), s.Store("b")
	watched, _ := s.watch(b, c.Lease)
	s.renew(s.a, []relay.LeaseID{c.Lease})
	s.notTaken(b, watched)
}

func takeFinished(s *suite) {
	c, b := s.claimed(Seed{}), s.Store("b")
	watched, _ := s.watch(b, c.Lease)
	s.settle(done(c))
	s.finish(s.a, c.Lease)
	s.notTaken(b, watched)
	s.leaseIDs()
}

func takeTaken(s *suite) {
	c, b := s.claimed(Seed{}), s.Store("b")
	watched, _ := s.watch(b, c.Lease)
	s.take(s.Store("c"), c.Lease)
	s.notTaken(b, watched)
}

func takeAtOnce(s *suite) {
	c := s.claimed(Seed{})
	stores := []relay.Database{s.Store("b"), s.Store("c"), s.Store("d")}
	watched := make([]relay.Lease, len(stores))
	for i, store := range stores {
		watched[i], _ = s.watch(store, c.Lease)
	}
	won := make([]bool, len(stores))
	var group sync.WaitGroup
	for i, store := range stores {
		group.Go(func() {
			var err error
			if _, won[i], err = store.Take(s.Context(), watched[i]); err != nil {
				s.Errorf("Take: %v", err)
			}
		})
	}
	group.Wait()
	winners := 0
	for i, name := range []string{"b", "c", "d"} {
		if won[i] {
			winners++
		}
		if owner := s.lease(c.Lease).Relay; won[i] != (owner == name) {
			s.Errorf("Take of %s worked: %v, and the lease is of %s", name, won[i], owner)
		}
	}
	if winners != 1 {
		s.Fatalf("%d takers won, want 1", winners)
	}
}

func takeOwn(s *suite) {
	c := s.claimed(Seed{})
	if was := s.take(s.a, c.Lease); was != "a" {
		s.Fatalf("Take says that the lease was of %q, want a", was)
	}
	moved, left := s.move(s.a, c.Lease, "a")
	s.sameIDs("Move", moved, c.ID)
	if left {
		s.Fatal("Move left something, and nothing was locked")
	}
}

func takeOldOwner(s *suite) {
	c := s.claimed(Seed{})
	s.take(s.Store("b"), c.Lease)
	s.renew(s.a, []relay.LeaseID{c.Lease}, c.Lease)
	s.finish(s.a, c.Lease)
	if owner := s.lease(c.Lease).Relay; owner != "b" {
		s.Fatalf("the lease is of %s, want b", owner)
	}
}
