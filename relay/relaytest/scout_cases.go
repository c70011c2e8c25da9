package relaytest

import (
	"fmt"
	"slices"
	"time"

	"github.com/outboxd/outboxd/relay"
)

func scoutCases() []storeCase {
	return []storeCase{
		{"routing keys are those of pending messages, each once", routingKeysPending},
		{"routing keys are told apart to the byte", routingKeysExact},
		{"waiting gives the oldest due, so many of each routing key", waitingOldest},
		{"waiting gives the last due", waitingNewest},
		{"waiting leaves out suspects", waitingNoSuspects},
		{"waiting gives suspects only", waitingSuspects},
		{"waiting gives attempts, changes nothing and waits for no lock", waitingReads},
		{"waiting for nothing is empty", waitingNothing},
	}
}

func (s *suite) routingKeys(want ...string) {
	s.Helper()
	got, err := s.a.RoutingKeys(s.Context())
	s.must("RoutingKeys", err)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.Fatalf("RoutingKeys gave %q, want %q", got, want)
	}
}

func routingKeysPending(s *suite) {
	s.routingKeys()
	s.Insert(repeat(20, Seed{Type: orders})...)
	s.Insert(
		Seed{Type: "late", Delay: time.Hour}, Seed{Type: "x", AggregateType: new("aggregate")}, Seed{Type: "lapsed", Lapses: 3},
		Seed{Type: "in flight"}, Seed{Type: "done"},
	)
	s.claim(relay.Quota{RoutingKey: "in flight", Limit: 1})
	s.settle(allDone(s.claim(relay.Quota{RoutingKey: "done", Limit: 1}))...)
	s.routingKeys(orders, "late", "aggregate", "lapsed")
}

func routingKeysExact(s *suite) {
	keys := []string{"a", "A", "ä", "a.b", "ab", "ß", "ss", "😀"}
	for i := range 50 {
		keys = append(keys, fmt.Sprintf("key-%02d", i))
	}
	for _, k := range keys {
		s.Insert(repeat(2, Seed{Type: k})...)
	}
	s.routingKeys(slices.Clone(keys)...)
	s.sameIDs("Claim of a key with a blank behind it", ids(s.claim(relay.Quota{RoutingKey: "a ", Limit: 10})))
	for _, k := range keys {
		if got := s.claim(relay.Quota{RoutingKey: k, Limit: 10}); len(got) != 2 {
			s.Errorf("Claim of routing key %q took %d messages, want 2", k, len(got))
		}
	}
}

// waiting looks and demands just these messages of each routing key, in this order.
func (s *suite) waiting(look relay.Look, want map[string][]string) {
	s.Helper()
	found, err := s.a.Waiting(s.Context(), look)
	s.must("Waiting", err)
	got := map[string][]string{}
	for _, w := range found {
		got[w.RoutingKey] = append(got[w.RoutingKey], w.ID)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.Fatalf("Waiting gave %v, want %v", got, want)
	}
}

func waitingOldest(s *suite) {
	o := s.Insert(
		Seed{Type: orders, Delay: -time.Hour}, Seed{Type: orders, Delay: -3 * time.Hour}, Seed{Type: orders, Delay: time.Hour},
		Seed{Type: orders, Delay: -2 * time.Hour},
	)
	r := s.Insert(Seed{Type: refunds})
	s.Insert(Seed{Type: "other"})
	keys := []string{orders, refunds, "absent"}
	s.waiting(relay.Look{RoutingKeys: keys, Limit: 2}, map[string][]string{orders: {o[1], o[3]}, refunds: {r[0]}})
	s.waiting(relay.Look{RoutingKeys: keys, Limit: 9}, map[string][]string{orders: {o[1], o[3], o[0]}, refunds: {r[0]}})
}

func waitingNewest(s *suite) {
	o := s.Insert(
		Seed{Type: orders, Delay: -time.Hour}, Seed{Type: orders, Delay: -3 * time.Hour}, Seed{Type: orders, Delay: time.Hour},
		Seed{Type: orders, Delay: -2 * time.Hour},
	)
	look := relay.Look{RoutingKeys: []string{orders}, Newest: true, Limit: 2}
	s.waiting(look, map[string][]string{orders: {o[0], o[3]}})
}

func waitingNoSuspects(s *suite) {
	o := s.Insert(
		Seed{Type: orders, Lapses: 2, Delay: -4 * time.Hour}, Seed{Type: orders, Lapses: 1, Delay: -3 * time.Hour},
		Seed{Type: orders, Lapses: 3, Delay: -2 * time.Hour}, Seed{Type: orders, Delay: -time.Hour}, Seed{Type: orders, Lapses: 2},
	)
	look := relay.Look{RoutingKeys: []string{orders}, Limit: 10}
	s.waiting(look, map[string][]string{orders: {o[1], o[3]}})
	look.Newest = true
	s.waiting(look, map[string][]string{orders: {o[3], o[1]}})
}

func waitingSuspects(s *suite) {
	o := s.Insert(
		Seed{Type: orders}, Seed{Type: orders, Lapses: 1}, Seed{Type: orders, Lapses: 2, Delay: -time.Minute},
		Seed{Type: orders, Lapses: 3, Delay: -time.Hour}, Seed{Type: orders, Lapses: 2, Delay: time.Hour},
	)
	found, err := s.a.Waiting(s.Context(), relay.Look{RoutingKeys: []string{orders, refunds}, Suspects: true, Limit: 10})
	s.must("Waiting", err)
	var got []string
	for _, w := range found {
		got = append(got, w.ID)
	}
	s.sameIDs("suspects", got, o[2], o[3])
}

func waitingReads(s *suite) {
	id := s.Insert(Seed{Type: orders, Attempts: 7}, Seed{Type: orders})
	before := s.rows(id...)
	s.claim(relay.Quota{RoutingKey: orders, ID: id[1], Limit: 1})
	defer s.Lock(id[0])()
	found, err := s.a.Waiting(s.Context(), relay.Look{RoutingKeys: []string{orders}, Limit: 10})
	s.must("Waiting", err)
	if want := (relay.Waiting{ID: id[0], RoutingKey: orders, Attempts: 7}); len(found) != 1 || found[0] != want {
		s.Fatalf("Waiting gave %+v, want %+v", found, want)
	}
	s.unchanged(before[0])
}

func waitingNothing(s *suite) {
	s.Insert(Seed{Type: orders})
	s.waiting(relay.Look{Limit: 10}, map[string][]string{})
	s.waiting(relay.Look{RoutingKeys: []string{refunds}, Limit: 10}, map[string][]string{})
}
