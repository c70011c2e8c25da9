package relaytest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// Beat implements relay.Presence.
func (s *Memory) Beat(ctx context.Context, b relay.Beat) (err error) {
	ended := s.locked(ctx, func(t *Table, now time.Time) {
		if t.locks[relayRow(s.relay)] > 0 {
			err = errors.New("another session holds the relay's row")
			return
		}
		if t.locks[breakerRows(s.relay)] > 0 {
			b.Breakers = around(t.beats[s.relay].Breakers, b.Breakers)
		}
		t.beats[s.relay] = beat{b, now}
	})
	return cmp.Or(ended, err)
}

// around leaves breakers that others hold as they were, and adds new ones.
func around(was, is []relay.BreakerState) []relay.BreakerState {
	all := slices.Clone(was)
	for _, b := range is {
		if !slices.ContainsFunc(was, func(w relay.BreakerState) bool { return breakerName(w) == breakerName(b) }) {
			all = append(all, b)
		}
	}
	return all
}

// breakerName is that of a breaker in outbox_control.
func breakerName(b relay.BreakerState) string {
	if b.RoutingKey == "" {
		return b.Destination
	}
	return b.Destination + "/" + b.RoutingKey
}

// Peers implements relay.Presence; they come sorted.
func (s *Memory) Peers(ctx context.Context) (peers []relay.Peer, err error) {
	err = s.locked(ctx, func(t *Table, _ time.Time) {
		for _, name := range slices.Sorted(maps.Keys(t.beats)) {
			b := t.beats[name]
			peers = append(peers, relay.Peer{Name: name, Seen: b.seen.Format(time.RFC3339Nano), Destinations: b.Destinations})
		}
	})
	return peers, err
}

// Leave implements relay.Presence.
func (s *Memory) Leave(ctx context.Context) error {
	return s.locked(ctx, func(t *Table, _ time.Time) { delete(t.beats, s.relay) })
}

// Relays reads the names of the relays that are alive, sorted.
func (t *Table) Relays() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.beats))
}

// Breakers reads the states of a relay's breakers, by their names in outbox_control.
func (t *Table) Breakers(relayName string) map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	states := map[string]string{}
	for _, b := range t.beats[relayName].Breakers {
		states[breakerName(b)] = b.State
	}
	return states
}

// Beat reads what a relay last told of itself.
func (t *Table) Beat(relayName string) (relay.Beat, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, ok := t.beats[relayName]
	return b.Beat, ok
}

// LockRelay holds the row of a relay in outbox_relay, as another session would, until unlock is called.
func (t *Table) LockRelay(relayName string) (unlock func()) { return t.lockRow(relayRow(relayName)) }

// LockBreakers holds the rows of a relay's breakers in outbox_control.
func (t *Table) LockBreakers(relayName string) (unlock func()) {
	return t.lockRow(breakerRows(relayName))
}

func relayRow(relayName string) string    { return "relay " + relayName }
func breakerRows(relayName string) string { return "breakers of " + relayName }

func (t *Table) lockRow(row string) (unlock func()) {
	add := func(n int) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.locks[row] += n
	}
	add(1)
	return sync.OnceFunc(func() { add(-1) })
}
