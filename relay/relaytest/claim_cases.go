package relaytest

import (
	"slices"
	"sync"
	"time"

	"github.com/outboxd/outboxd/relay"
)

func claimCases() []storeCase {
	return []storeCase{
		{"takes what is due, longest due first", claimOrder},
		{"takes by seq what is due since the same moment", claimTies},
		{"takes no more than each quota asks for", claimQuotas},
		{"takes nothing that is not due", claimDueOnly},
		{"takes never lapsed and once lapsed messages apart", claimLapses},
		{"takes one by its id, whatever its lapses", claimByID},
		{"takes none by an id that is not due, locked, or absent", claimByIDNotFree},
		{"takes a message once, though two quotas ask for it", claimOverlap},
		{"passes over a locked row", claimLocked},
		{"writes state, lease and due_at, and nothing else", claimEffect},
		{"makes one lease row", claimLeaseRow},
		{"makes no lease row where nothing is due", claimNoLeaseRow},
		{"answers what the row says", claimFields},
		{"is disjoint among relays", claimDisjoint},
		{"fails with an ended context, and takes nothing", claimEnded},
	}
}

func claimOrder(s *suite) {
	id := s.Insert(
		Seed{Type: orders, Delay: -1 * time.Hour}, Seed{Type: orders, Delay: -3 * time.Hour},
		Seed{Type: orders, Delay: -2 * time.Hour}, Seed{Type: orders, Delay: -3 * time.Hour},
	)
	two := relay.Quota{RoutingKey: orders, Limit: 2}
	s.sameIDs("first claim", ids(s.claim(two)), id[1], id[3])
	s.sameIDs("second claim", ids(s.claim(two)), id[2], id[0])
	s.sameIDs("third claim", ids(s.claim(two)))
}

// claimTies uses that what was reclaimed together is due since the same moment.
func claimTies(s *suite) {
	id := s.Insert(repeat(20, Seed{Type: orders})...)
	s.reclaim(s.Store("b"), s.claim(ofOrders)[0].Lease)
	five := relay.Quota{RoutingKey: orders, Lapses: 1, Limit: 5}
	s.sameIDs("first claim", ids(s.claim(five)), id[:5]...)
	s.sameIDs("second claim", ids(s.claim(five)), id[5:10]...)
}

func claimQuotas(s *suite) {
	order := s.Insert(repeat(5, Seed{Type: orders, Delay: -time.Hour})...)
	refund := s.Insert(repeat(5, Seed{Type: "ignored", AggregateType: new(refunds), Delay: -time.Hour})...)
	s.Insert(Seed{Type: "other", Delay: -time.Hour})
	claims := s.claim(relay.Quota{RoutingKey: orders, Limit: 2}, relay.Quota{RoutingKey: refunds, Limit: 3})
	s.sameIDs("Claim", ids(claims), slices.Concat(order[:2], refund[:3])...)
}

func claimDueOnly(s *suite) {
	later := s.Insert(Seed{Type: orders, Delay: time.Hour})[0]
	s.sameIDs("Claim", ids(s.claim(ofOrders)))
	s.sameIDs("Claim by id", ids(s.claim(relay.Quota{RoutingKey: orders, ID: later, Limit: 1})))
	s.states(relay.Pending, later)
}

func claimLapses(s *suite) {
	id := s.Insert(Seed{Type: orders}, Seed{Type: orders, Lapses: 1}, Seed{Type: orders, Lapses: 2})
	s.sameIDs("lapses 1", ids(s.claim(relay.Quota{RoutingKey: orders, Lapses: 1, Limit: 10})), id[1])
	s.sameIDs("lapses 0", ids(s.claim(relay.Quota{RoutingKey: orders, Limit: 10})), id[0])
	s.states(relay.Pending, id[2])
}

func claimByID(s *suite) {
	id := s.Insert(Seed{Type: orders, Lapses: 2}, Seed{Type: orders, Lapses: 1}, Seed{Type: orders}, Seed{Type: orders})
	for _, id := range id[:3] {
		s.sameIDs("Claim by id", ids(s.claim(relay.Quota{RoutingKey: orders, ID: id, Limit: 1})), id)
	}
	s.states(relay.Pending, id[3])
}

func claimByIDNotFree(s *suite) {
	id := s.Insert(repeat(2, Seed{Type: orders})...)
	byID := func(id string) relay.Quota { return relay.Quota{RoutingKey: orders, ID: id, Limit: 1} }
	s.claim(byID(id[0]))
	s.sameIDs("in flight", ids(s.claim(byID(id[0]))))
	unlock := s.Lock(id[1])
	s.sameIDs("locked", ids(s.claim(byID(id[1]))))
	unlock()
	s.sameIDs("absent", ids(s.claim(byID("01900000-0000-7000-8000-000000000000"))))
	s.sameIDs("unlocked", ids(s.claim(byID(id[1]))), id[1])
}

func claimOverlap(s *suite) {
	id := s.Insert(repeat(3, Seed{Type: orders})...)
	claims := s.claim(relay.Quota{RoutingKey: orders, ID: id[0], Limit: 1}, relay.Quota{RoutingKey: orders, Limit: 3})
	s.sameIDs("Claim", slices.Compact(slices.Sorted(slices.Values(ids(claims)))), ids(claims)...)
	s.states(relay.InFlight, ids(claims)...)
}

func claimLocked(s *suite) {
	id := s.Insert(repeat(3, Seed{Type: orders})...)
	unlock := s.Lock(id[1])
	s.sameIDs("while locked", ids(s.claim(ofOrders)), id[0], id[2])
	unlock()
	s.sameIDs("after unlock", ids(s.claim(ofOrders)), id[1])
}

func claimEffect(s *suite) {
	id := s.Insert(Seed{
		Type: orders, Attempts: 4, Lapses: 1, UnknownFor: time.Minute, Expires: time.Hour,
		SendID: "01900000-0000-7000-8000-0000000000aa",
	}, Seed{Type: orders})
	before := s.rows(id...)
	claim := s.claim(relay.Quota{RoutingKey: orders, Lapses: 1, Limit: 1})[0]
	want := before[0]
	want.State, want.LeaseID, want.DueAt = relay.InFlight, claim.Lease, time.Time{}
	s.equal(s.row(id[0]), want)
	s.unchanged(before[1])
	if got := s.Attempts(id[0]); len(got) != 0 {
		s.Fatalf("a claim left rows in outbox_attempt: %v", got)
	}
}

func claimLeaseRow(s *suite) {
	id := s.Insert(repeat(3, Seed{Type: orders})...)
	before, lease := s.row(id[0]).Now, newLease()
	claims, err := s.a.Claim(s.Context(), lease, 1500*time.Millisecond, []relay.Quota{ofOrders})
	s.must("Claim", err)
	s.sameIDs("Claim", ids(claims), id...)
	rows := s.Leases()
	if len(rows) != 1 || rows[0].ID != lease || rows[0].Relay != "a" || rows[0].Length != 1500*time.Millisecond {
		s.Fatalf("lease rows are %+v, want one: lease %d of relay a, 1.5s long", rows, lease)
	}
	s.between("claimed_at", rows[0].ClaimedAt, before, s.row(id[0]).Now)
	s.between("renewed_at", rows[0].RenewedAt, rows[0].ClaimedAt, rows[0].ClaimedAt)
}

func claimNoLeaseRow(s *suite) {
	s.Insert(Seed{Type: orders, Delay: time.Hour}, Seed{Type: refunds})
	s.sameIDs("Claim", ids(s.claim(ofOrders, relay.Quota{RoutingKey: orders, Lapses: 1, Limit: 10})))
	if rows := s.Leases(); len(rows) != 0 {
		s.Fatalf("lease rows are %+v, want none", rows)
	}
}

func claimFields(s *suite) {
	id := s.Insert(
		Seed{
			Type: orders, AggregateType: new("order"), Payload: []byte("né"), Headers: `{"ü": "x"}`, SchemaVersion: 7,
			Age: 90 * time.Minute, Expires: -time.Minute, UnknownFor: 20 * time.Minute, Attempts: 3,
		},
		Seed{Type: orders, AggregateType: new("order"), Expires: time.Hour, Payload: []byte{0, 255, 0}},
		Seed{Type: orders, AggregateType: new("order")},
	)
	claims := s.claim(relay.Quota{RoutingKey: "order", Limit: 3})
	s.sameIDs("Claim", ids(claims), id...)
	slices.SortFunc(claims, func(a, b relay.Claim) int { return int(a.Seq - b.Seq) })
	full, bare, rows := claims[0], claims[1], s.rows(id...)

	s.within("Age", full.Age, 90*time.Minute, rows[0].Now.Sub(rows[0].CreatedAt))
	s.within("UnknownFor", full.UnknownFor, 20*time.Minute, rows[0].Now.Sub(rows[0].UnknownSince))
	s.within("ExpiresIn of the past", full.ExpiresIn, rows[0].ExpiresAt.Sub(rows[0].Now), 0)
	s.within("ExpiresIn of later", bare.ExpiresIn, rows[1].ExpiresAt.Sub(rows[1].Now), time.Hour)
	for i, want := range []relay.Claim{
		{
			SchemaVersion: 7, Attempts: 3, Expires: true, ExpiresIn: full.ExpiresIn, Age: full.Age, Unknown: true,
			UnknownFor: full.UnknownFor, Bytes: len("né") + len(`{"ü": "x"}`),
		},
		{SchemaVersion: 1, Expires: true, ExpiresIn: bare.ExpiresIn, Age: bare.Age, Bytes: 3 + len("{}")},
		{SchemaVersion: 1, Age: claims[2].Age, Bytes: len("{}")},
	} {
		want.ID, want.Seq, want.Lease, want.RoutingKey, want.Type = id[i], rows[i].Seq, full.Lease, "order", orders
		if d := difference(claims[i], want); d != "" {
			s.Errorf("claim %d: %s", i, d)
		}
	}
}

// within demands a duration from least to most.
func (s *suite) within(what string, got, least, most time.Duration) {
	s.Helper()
	if got < least || got > most {
		s.Errorf("%s is %v, want it from %v to %v", what, got, least, most)
	}
}

func claimDisjoint(s *suite) {
	all := s.Insert(repeat(300, Seed{Type: orders})...)
	stores := []relay.Store{s.a, s.a, s.Store("b"), s.Store("c")}
	taken := make([][]string, len(stores))
	var group sync.WaitGroup
	for i, store := range stores {
		group.Go(func() { taken[i] = s.claimUntilEmpty(store) })
	}
	group.Wait()
	// A claim may find the last due messages locked by another and leave: what is still due comes last.
	s.sameIDs("all claims", append(slices.Concat(taken...), s.claimUntilEmpty(s.a)...), all...)
}

// claimUntilEmpty claims by sevens until nothing comes; it may run in any goroutine.
func (s *suite) claimUntilEmpty(store relay.Store) (taken []string) {
	for range 1000 {
		claims, err := store.Claim(s.Context(), newLease(), long, []relay.Quota{{RoutingKey: orders, Limit: 7}})
		if err != nil {
			s.Errorf("Claim: %v", err)
		}
		if len(claims) == 0 {
			return taken
		}
		if len(claims) > 7 {
			s.Errorf("Claim of 7 took %d", len(claims))
		}
		taken = append(taken, ids(claims)...)
	}
	s.Error("claims find no end")
	return taken
}

func claimEnded(s *suite) {
	id := s.Insert(Seed{Type: orders})
	if _, err := s.a.Claim(cancelledContext(s.Context()), newLease(), long, []relay.Quota{ofOrders}); err == nil {
		s.Fatal("Claim with an ended context has no error")
	}
	s.states(relay.Pending, id...)
}
