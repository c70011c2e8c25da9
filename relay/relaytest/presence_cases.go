package relaytest

import (
	"slices"

	"github.com/outboxd/outboxd/relay"
)

func presenceCases() []storeCase {
	return []storeCase{
		{"a relay that beats is there until it leaves", beatAndLeave},
		{"beats again with other destinations and breakers", beatAgain},
		{"leaves without a beat, and twice", leaveAlone},
	}
}

func (s *suite) relays(want ...string) {
	s.Helper()
	if got := s.Relays(); !slices.Equal(got, want) {
		s.Fatalf("outbox_relay has %q, want %q", got, want)
	}
}

func beatAndLeave(s *suite) {
	b := s.Store("b")
	s.relays()
	s.must("Beat", s.a.Beat(s.Context(), relay.Beat{Host: "h", Version: "1", ConfigHash: "c", Destinations: []string{"kafka"}}))
	s.must("Beat", b.Beat(s.Context(), relay.Beat{}))
	s.relays("a", "b")
	s.must("Leave", s.a.Leave(s.Context()))
	s.relays("b")
}

func beatAgain(s *suite) {
	beat := relay.Beat{
		Host: "h", Destinations: []string{"kafka", "hooks"},
		Breakers: []relay.BreakerState{
			{Destination: "kafka", State: "ok"},
			{Destination: "kafka", RoutingKey: orders, State: "open", Failures: 5, LastError: `http_5xx: "no" {a,b}`},
			{Destination: "hooks", State: "ramp", Width: 3},
		},
	}
	for range 3 {
		s.must("Beat", s.a.Beat(s.Context(), beat))
		beat.Destinations, beat.Breakers = beat.Destinations[1:], beat.Breakers[1:]
		s.relays("a")
		if len(beat.Destinations) == 0 {
			break
		}
	}
	s.must("Leave", s.a.Leave(s.Context()))
	s.relays()
}

func leaveAlone(s *suite) {
	s.must("Leave", s.a.Leave(s.Context()))
	s.must("Leave", s.a.Leave(s.Context()))
	s.relays()
}
