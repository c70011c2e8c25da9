package relaytest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/outboxd/outboxd/relay"
)

func instanceCases() []storeCase {
	return []storeCase{
		{"is none as long as no relay names one", instanceNone},
		{"is the name that a relay gave first", instanceFirst},
		{"is one where many relays name one at once", instanceAtOnce},
		{"is looked at by the claim itself", instanceClaims},
		{"is looked at by the claim of a relay of none", instanceClaimsNone},
	}
}

// instanceOf asks whose the outbox is.
func (s *suite) instanceOf(store relay.Database) string {
	s.Helper()
	of, err := store.Instance(s.Context())
	s.must("Instance", err)
	return of
}

func instanceNone(s *suite) {
	for range 2 {
		if of := s.instanceOf(s.a); of != "" {
			s.Fatalf("the outbox belongs to %q, want none", of)
		}
	}
}

func instanceFirst(s *suite) {
	const first = `shop-production "1" é`
	for _, name := range []string{first, "shop-staging", "", first} {
		if of := s.instanceOf(s.StoreOf("b", name)); of != first {
			s.Fatalf("asked as %q, the outbox belongs to %q, want %q", name, of, first)
		}
	}
}

func instanceAtOnce(s *suite) {
	const relays = 4
	var all [relays]string
	var asking sync.WaitGroup
	for i := range relays {
		store := s.StoreOf(fmt.Sprint("r", i), fmt.Sprint("shop", i))
		asking.Go(func() { all[i], _ = store.Instance(s.Context()) })
	}
	asking.Wait()
	for _, of := range all {
		if of == "" || of != all[0] {
			s.Fatalf("the relays were told %q, want the same name", all)
		}
	}
}

// instanceClaims changes the instance behind the back of a relay that was told that the outbox is its own, as it is when
// only some of its connections lead to a copy.
func instanceClaims(s *suite) {
	const own = `shop-production "1" é <&>`
	b := s.StoreOf("b", own)
	if of := s.instanceOf(b); of != own {
		s.Fatalf("the outbox belongs to %q, want %q", of, own)
	}
	due := s.Insert(repeat(2, Seed{Type: orders})...)
	s.sameIDs("Claim", ids(s.claimBy(b, newLease(), ofOrders)), due...)
	s.claimsNothing(b, "shop-staging", own+" ", "SHOP-PRODUCTION \"1\" É <&>")
	s.SetInstance(own)
	if claims := s.claimBy(b, newLease(), ofOrders); len(claims) == 0 {
		s.Fatal("nothing was claimed of an outbox that is the relay's own again")
	}
}

func instanceClaimsNone(s *suite) {
	if of := s.instanceOf(s.a); of != "" {
		s.Fatalf("the outbox belongs to %q, want none", of)
	}
	s.claimsNothing(s.a, "shop-staging")
}

// claimsNothing demands that a claim, of whatever is due and under whatever lease, is refused where the outbox belongs to one
// of these instances.
func (s *suite) claimsNothing(store relay.Store, instances ...string) {
	s.Helper()
	due := s.Insert(Seed{Type: orders}, Seed{Type: orders, Lapses: 1}, Seed{Type: orders, Lapses: 3})
	was, leases := s.rows(due...), len(s.Leases())
	again := newLease()
	for _, of := range instances {
		s.SetInstance(of)
		for _, q := range []relay.Quota{
			ofOrders, {RoutingKey: orders, Lapses: 1, Limit: 1}, {RoutingKey: orders, ID: due[2], Limit: 1},
		} {
			for _, lease := range []relay.LeaseID{newLease(), again} {
				claims, err := store.Claim(s.Context(), lease, long, []relay.Quota{q})
				if len(claims) > 0 || !errors.Is(err, relay.ErrForeign) {
					s.Fatalf("an outbox of %q: Claim of %+v took %d messages, with %v", of, q, len(claims), err)
				}
			}
		}
	}
	s.unchanged(was...)
	if n := len(s.Leases()); n != leases {
		s.Fatalf("%d leases, want %d", n, leases)
	}
}
