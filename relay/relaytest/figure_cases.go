package relaytest

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/outboxd/outboxd/relay"
)

func figureCases() []storeCase {
	return []storeCase{
		{"depths tell what waits by routing key and type, and how long the first has been due", depths},
		{"depths look at so many of each number of lapses, the oldest among them", depthsBounded},
		{"totals tell what is in flight and what failed, without what is resolved", totals},
		{"totals look at so many", totalsBounded},
		{"totals tell for how long a lease has lapsed", totalsLapsed},
		{"a duty is taken once, renewed, given up and taken again", dutyHands},
		{"of relays that take a duty at once one has it", dutyRace},
	}
}

// depthsOf are those of routing keys, sorted by routing key and type, with ages in whole minutes.
func (s *suite) depthsOf(limit int, routingKeys ...string) []relay.Depth {
	s.Helper()
	depths, err := s.a.Depths(s.Context(), routingKeys, limit)
	s.must("Depths", err)
	slices.SortFunc(depths, func(a, b relay.Depth) int {
		return cmp.Or(cmp.Compare(a.RoutingKey, b.RoutingKey), cmp.Compare(a.Type, b.Type))
	})
	for i := range depths {
		depths[i].Oldest = depths[i].Oldest.Truncate(time.Minute)
	}
	return depths
}

func depths(s *suite) {
	key := "shop"
	s.Insert(
		Seed{Type: orders, Delay: -time.Hour}, Seed{Type: orders, Delay: -2 * time.Hour, Lapses: 3}, Seed{Type: orders, Delay: time.Hour},
		Seed{Type: orders, AggregateType: &key, Delay: -10 * time.Minute}, Seed{Type: refunds, AggregateType: &key, Lapses: 4, Delay: -5 * time.Minute},
		Seed{Type: "late", AggregateType: &key, Delay: time.Hour, Lapses: 9},
	)
	want := []relay.Depth{
		{RoutingKey: orders, Type: orders, Pending: 3, Due: 2, Oldest: 2 * time.Hour},
		{RoutingKey: key, Type: "late", Pending: 1},
		{RoutingKey: key, Type: orders, Pending: 1, Due: 1, Oldest: 10 * time.Minute},
		{RoutingKey: key, Type: refunds, Pending: 1, Due: 1, Oldest: 5 * time.Minute},
	}
	if got := s.depthsOf(1000, orders, "nothing", key); !slices.Equal(got, want) {
		s.Fatalf("depths are %+v, want %+v", got, want)
	}
}

func depthsBounded(s *suite) {
	key := "shop"
	for i := range 20 {
		s.Insert(Seed{Type: orders, AggregateType: &key, Delay: -time.Duration(i) * time.Hour})
	}
	s.Insert(Seed{Type: refunds, AggregateType: &key, Delay: -time.Minute}, Seed{Type: refunds, AggregateType: &key, Delay: -time.Minute, Lapses: 2})
	want := []relay.Depth{
		{RoutingKey: key, Type: orders, Pending: 5, Due: 5, Oldest: 19 * time.Hour, More: true},
		{RoutingKey: key, Type: refunds, Pending: 1, Due: 1, Oldest: time.Minute, More: true},
	}
	if got := s.depthsOf(5, key); !slices.Equal(got, want) {
		s.Fatalf("depths are %+v, want %+v", got, want)
	}
}

// totals reads them.
func (s *suite) totals(limit int) relay.Totals {
	s.Helper()
	t, err := s.a.Totals(s.Context(), limit)
	s.must("Totals", err)
	return t
}

// fails claims messages and settles them failed.
func (s *suite) fails(n int) (ids []string) {
	s.Helper()
	for range n {
		c := s.claimed(Seed{})
		s.settle(relay.Decide(relay.Try{Claim: c, Outcome: relay.Fail(relay.Rejected, "http_4xx", "no")}))
		s.must("Finish", s.a.Finish(s.Context(), []relay.LeaseID{c.Lease}))
		ids = append(ids, c.ID)
	}
	return ids
}

func totals(s *suite) {
	if t := s.totals(1000); len(t.InFlight) != 0 || len(t.Failed) != 0 || t.Lapsed != 0 || t.InFlightMore || t.FailedMore {
		s.Fatalf("of nothing the totals are %+v", t)
	}
	failed := s.fails(3)
	s.apply(s.order(relay.OpResolve, ofID(failed[0])), 1, nil)
	s.settle(done(s.claimed(Seed{})))
	s.claimed(Seed{})
	s.Insert(repeat(2, Seed{Type: refunds})...)
	s.claim(relay.Quota{RoutingKey: refunds, Limit: 2})
	t := s.totals(1000)
	if want := map[string]int{orders: 1, refunds: 2}; !maps.Equal(t.InFlight, want) || t.InFlightMore {
		s.Errorf("in flight are %v (more: %t), want %v", t.InFlight, t.InFlightMore, want)
	}
	if want := map[relay.FailedKind]int{{Type: orders, Reason: relay.Rejected}: 2}; !maps.Equal(t.Failed, want) || t.FailedMore {
		s.Errorf("failed are %v (more: %t), want %v", t.Failed, t.FailedMore, want)
	}
}

func totalsBounded(s *suite) {
	s.fails(3)
	s.Insert(repeat(3, Seed{Type: refunds})...)
	s.claim(relay.Quota{RoutingKey: refunds, Limit: 3})
	t := s.totals(2)
	if !maps.Equal(t.InFlight, map[string]int{refunds: 2}) || !t.InFlightMore {
		s.Errorf("in flight are %v (more: %t), want 2 and more", t.InFlight, t.InFlightMore)
	}
	if !maps.Equal(t.Failed, map[relay.FailedKind]int{{Type: orders, Reason: relay.Rejected}: 2}) || !t.FailedMore {
		s.Errorf("failed are %v (more: %t), want 2 and more", t.Failed, t.FailedMore)
	}
}

func totalsLapsed(s *suite) {
	s.Insert(Seed{Type: orders}, Seed{Type: orders})
	for _, length := range []time.Duration{long, time.Millisecond} {
		if t := s.totals(1000); t.Lapsed != 0 {
			s.Fatalf("no lease has lapsed, but one for %v", t.Lapsed)
		}
		_, err := s.a.Claim(s.Context(), newLease(), length, []relay.Quota{{RoutingKey: orders, Limit: 1}})
		s.must("Claim", err)
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if s.totals(1000).Lapsed > 0 {
			return
		}
	}
	s.Error("a lease that lapsed is not told")
}

// swaps asks for a change of a duty, and demands what it is after that.
func (s *suite) swaps(store relay.Gauger, seen, want, then relay.Duty) {
	s.Helper()
	got, err := store.SwapDuty(s.Context(), seen, want)
	s.must("SwapDuty", err)
	if got != then {
		s.Fatalf("the duty is %+v, want %+v", got, then)
	}
}

func dutyHands(s *suite) {
	b := s.Store("b")
	nobody := relay.Duty{Kind: "exporter"}
	ofA := relay.Duty{Kind: "exporter", Relay: "a", Epoch: 1, Length: 1500 * time.Millisecond}
	ofB := relay.Duty{Kind: "exporter", Relay: "b", Epoch: 2, Length: time.Second}
	s.swaps(s.a, nobody, nobody, nobody)
	s.swaps(s.a, nobody, ofA, ofA)
	s.swaps(b, nobody, ofB, ofA)
	s.swaps(b, ofA, ofA, ofA)
	renewed := ofA
	renewed.Beats++
	s.swaps(s.a, ofA, renewed, renewed)
	s.swaps(b, ofA, ofB, renewed)
	s.swaps(b, renewed, ofB, ofB)
	s.swaps(s.a, renewed, relay.Duty{Kind: "exporter", Relay: "a", Epoch: 1, Beats: 2, Length: ofA.Length}, ofB)
	free := ofB
	free.Relay = ""
	s.swaps(b, ofB, free, free)
	ofA.Epoch = 3
	s.swaps(s.a, free, ofA, ofA)
	other := relay.Duty{Kind: "exporter", Name: "2"}
	s.swaps(s.a, other, other, other)
}

func dutyRace(s *suite) {
	names := []string{"a", "b", "c", "d"}
	seen := relay.Duty{Kind: "exporter"}
	for range 3 {
		var racing sync.WaitGroup
		got := make([]relay.Duty, len(names))
		errs := make([]error, len(names))
		for i, name := range names {
			store := s.Store(name)
			racing.Go(func() {
				got[i], errs[i] = store.SwapDuty(s.Context(), seen, relay.Duty{Kind: "exporter", Relay: name, Epoch: seen.Epoch + 1, Length: time.Second})
			})
		}
		racing.Wait()
		for i, name := range names {
			s.must("SwapDuty of "+name, errs[i])
			if got[i] != got[0] || got[i].Relay == "" || got[i].Epoch != seen.Epoch+1 {
				s.Fatalf("%s was told %+v, %s %+v", names[0], got[0], name, got[i])
			}
		}
		seen = got[0]
	}
}
