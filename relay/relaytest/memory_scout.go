package relaytest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// RoutingKeys implements relay.Scout; they come sorted.
func (s *Memory) RoutingKeys(ctx context.Context) (keys []string, err error) {
	err = s.locked(ctx, func(t *Table, _ time.Time) {
		pending := map[string]bool{}
		for _, m := range t.messages {
			if m.State == relay.Pending {
				pending[m.RoutingKey] = true
			}
		}
		keys = slices.Sorted(maps.Keys(pending))
	})
	return keys, err
}

// Waiting implements relay.Scout.
func (s *Memory) Waiting(ctx context.Context, look relay.Look) (waiting []relay.Waiting, err error) {
	err = s.locked(ctx, func(t *Table, now time.Time) {
		for _, key := range look.RoutingKeys {
			due := t.waiting(now, func(m *message) bool {
				return m.RoutingKey == key && (m.Lapses > 1) == look.Suspects
			})
			if look.Newest {
				slices.Reverse(due)
			}
			for _, m := range due[:min(len(due), look.Limit)] {
				waiting = append(waiting, relay.Waiting{ID: m.ID, RoutingKey: key, Attempts: m.Attempts})
			}
		}
	})
	return waiting, err
}
