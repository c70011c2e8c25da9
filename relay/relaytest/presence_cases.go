package relaytest

import (
	"context"
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
		{"its breakers are there after each beat, and no others", breakersShown},
		{"beats on while others hold rows of its breakers and of another relay", beatAround},
		{"fails to beat while another holds its own row", beatLocked},
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
	s.beatsOn("b", b, relay.Beat{}, before)
}

// beatsOn demands that beats give a relay another mark, and leave those of the others. A database's clock may stand still
// between two beats; relays are seconds apart.
func (s *suite) beatsOn(name string, store relay.Presence, b relay.Beat, before map[string]relay.Peer) {
	s.Helper()
	after := before
	for end := time.Now().Add(time.Minute); after[name].Seen == before[name].Seen && time.Now().Before(end); after = s.peers(store) {
		s.must("Beat", store.Beat(s.Context(), b))
	}
	if after[name].Seen == before[name].Seen {
		s.Errorf("beats of %s left the peers at %+v", name, after)
	}
	for other := range before {
		if other != name && after[other].Seen != before[other].Seen {
			s.Errorf("beats of %s changed the mark of %s from %+v to %+v", name, other, before, after)
		}
	}
}

// breakers is a beat with breakers in these states, by destination.
func breakers(states map[string]string) (b relay.Beat) {
	for destination, state := range states {
		b.Breakers = append(b.Breakers, relay.BreakerState{Destination: destination, State: state})
	}
	return b
}

// shows demands that a beat, or on a busy machine one of the next, shows breakers in these states.
func (s *suite) shows(name string, store relay.Presence, states map[string]string) {
	s.Helper()
	s.showsOf(name, store, states, states)
}

// showsOf demands that of a beat with breakers in these states people see those.
func (s *suite) showsOf(name string, store relay.Presence, states, want map[string]string) {
	s.Helper()
	var got map[string]string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		s.must("Beat", store.Beat(s.Context(), breakers(states)))
		if got = s.Breakers(name); maps.Equal(got, want) {
			return
		}
	}
	s.Fatalf("the breakers of %s are %v, want %v", name, got, want)
}

func breakersShown(s *suite) {
	b := s.Store("b")
	s.shows("b", b, map[string]string{"kafka": "ramp"})
	for _, states := range []map[string]string{{"kafka": "ok", "hooks": "open"}, {"kafka": "open", "mail": "ok"}, {}} {
		s.shows("a", s.a, states)
	}
	if got := s.Breakers("b"); len(got) != 1 {
		s.Errorf("after beats of a the breakers of b are %v", got)
	}
}

func beatAround(s *suite) {
	b := s.Store("b")
	was, is := map[string]string{"kafka": "ok", "hooks": "ok"}, map[string]string{"kafka": "open", "mail": "ok"}
	s.shows("a", s.a, was)
	s.shows("b", b, was)
	unlockRelay, unlockBreakers := s.LockRelay("b"), s.LockBreakers("a")
	s.beatsOn("a", s.a, breakers(is), s.peers(s.a))
	s.showsOf("a", s.a, is, map[string]string{"kafka": "ok", "hooks": "ok", "mail": "ok"})
	unlockBreakers()
	s.shows("a", s.a, is)
	unlockRelay()
	s.beatsOn("b", b, breakers(is), s.peers(s.a))
	s.shows("b", b, is)
}

func beatLocked(s *suite) {
	s.must("Beat", s.a.Beat(s.Context(), relay.Beat{}))
	defer s.LockRelay("a")()
	ctx, cancel := context.WithTimeout(s.Context(), 200*time.Millisecond)
	defer cancel()
	if err := s.a.Beat(ctx, relay.Beat{}); err == nil {
		s.Error("a beat that was not written has no error")
	}
}
