package relaytest

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/outboxd/outboxd/relay"
)

func presenceCases() []storeCase {
	return []storeCase{
		{"a relay that beats is there until it leaves", beatAndLeave},
		{"beats again with other destinations and breakers", beatAgain},
		{"leaves without a beat, and twice", leaveAlone},
		{"peers are all relays that beat and did not leave, with what they serve", peersServe},
		{"a peer's mark changes with each of its beats, and only then", peersSeen},
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

// peers are what a relay sees of all, by name.
func (s *suite) peers(store relay.Presence) map[string]relay.Peer {
	s.Helper()
	all, err := store.Peers(s.Context())
	s.must("Peers", err)
	byName := map[string]relay.Peer{}
	for _, p := range all {
		byName[p.Name] = p
	}
	if len(byName) != len(all) {
		s.Fatalf("Peers names a relay twice: %+v", all)
	}
	return byName
}

func peersServe(s *suite) {
	b, c := s.Store("b"), s.Store("c")
	if got := s.peers(s.a); len(got) != 0 {
		s.Fatalf("before any beat the peers are %+v", got)
	}
	serve := func(store relay.Presence, destinations ...string) {
		s.Helper()
		s.must("Beat", store.Beat(s.Context(), relay.Beat{Destinations: destinations}))
	}
	serve(s.a, "kafka", `hooks "ü" {a,b}`)
	serve(b)
	see := func(want map[string]string) {
		s.Helper()
		for _, store := range []relay.Presence{s.a, b, c} {
			got := map[string]string{}
			for name, p := range s.peers(store) {
				got[name] = strings.Join(p.Destinations, "; ")
			}
			if !maps.Equal(got, want) {
				s.Errorf("the peers serve %q, want %q", got, want)
			}
		}
	}
	see(map[string]string{"a": `kafka; hooks "ü" {a,b}`, "b": ""})
	serve(b, "kafka")
	serve(c, "mail")
	serve(s.a, "hooks")
	see(map[string]string{"a": "hooks", "b": "kafka", "c": "mail"})
	s.must("Leave", b.Leave(s.Context()))
	see(map[string]string{"a": "hooks", "c": "mail"})
}

func peersSeen(s *suite) {
	b := s.Store("b")
	s.must("Beat", s.a.Beat(s.Context(), relay.Beat{}))
	s.must("Beat", b.Beat(s.Context(), relay.Beat{}))
	before := s.peers(s.a)
	if before["a"].Seen == "" || before["b"].Seen == "" {
		s.Fatalf("the peers are %+v, want a mark of each", before)
	}
	c := s.claimed(Seed{})
	_, err := b.Renew(s.Context(), []relay.LeaseID{c.Lease})
	s.must("Renew", err)
	s.settle(done(c))
	s.must("Finish", s.a.Finish(s.Context(), []relay.LeaseID{c.Lease}))
	if after := s.peers(b); after["a"].Seen != before["a"].Seen || after["b"].Seen != before["b"].Seen {
		s.Errorf("without a beat the peers went from %+v to %+v", before, after)
	}
	// A database's clock may stand still between two beats; relays are seconds apart.
	after := before
	for end := time.Now().Add(time.Minute); after["b"].Seen == before["b"].Seen && time.Now().Before(end); after = s.peers(s.a) {
		s.must("Beat", b.Beat(s.Context(), relay.Beat{}))
	}
	if after["b"].Seen == before["b"].Seen || after["a"].Seen != before["a"].Seen {
		s.Errorf("beats of b took the peers from %+v to %+v, want another mark of b alone", before, after)
	}
}
