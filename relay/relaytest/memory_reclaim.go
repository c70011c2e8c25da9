package relaytest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// orphanPage is how many messages one call of Orphans looks at: few, so that small tests walk several pages.
const orphanPage = 100

// Watch implements relay.Reclaimer. Its era never changes.
func (s *Memory) Watch(ctx context.Context) (era string, leases []relay.Lease, err error) {
	err = s.locked(ctx, func(t *Table, _ time.Time) {
		for _, id := range slices.Sorted(maps.Keys(t.leases)) {
			leases = append(leases, t.leases[id].watched())
		}
	})
	return "memory", leases, err
}

func (l *lease) watched() relay.Lease {
	return relay.Lease{ID: l.ID, Relay: l.Relay, Renewed: l.RenewedAt.UTC().Format(time.RFC3339Nano), Length: l.Length}
}

// Take implements relay.Reclaimer.
func (s *Memory) Take(ctx context.Context, watched relay.Lease) (was string, ok bool, err error) {
	err = s.locked(ctx, func(t *Table, now time.Time) {
		l := t.leases[watched.ID]
		if l == nil || l.watched() != watched {
			return
		}
		was, ok = l.Relay, true
		l.Relay, l.RenewedAt = s.relay, now
	})
	return was, ok, err
}

// Move implements relay.Reclaimer.
func (s *Memory) Move(ctx context.Context, id relay.LeaseID, was string) (moved []relay.Moved, left bool, err error) {
	err = s.locked(ctx, func(t *Table, now time.Time) {
		for _, m := range t.held(id, s.relay) {
			if m.locked > 0 {
				left = true
				continue
			}
			t.lapse(m, was, t.leases[id].ClaimedAt, now)
			moved = append(moved, relay.Moved{ID: m.ID, RoutingKey: m.RoutingKey})
		}
	})
	return moved, left, err
}

// Orphans implements relay.Reclaimer. Nobody knows whose lease an orphan was under, so its attempt names no relay.
func (s *Memory) Orphans(ctx context.Context, after string) (moved []relay.Moved, next string, err error) {
	err = s.locked(ctx, func(t *Table, now time.Time) {
		ids := slices.Sorted(maps.Keys(t.messages))
		from, found := slices.BinarySearch(ids, after)
		if found {
			from++
		}
		page := ids[from:]
		if len(page) > orphanPage {
			page = page[:orphanPage]
			next = page[orphanPage-1]
		}
		for _, id := range page {
			m := t.messages[id]
			if m.State == relay.InFlight && t.leases[m.LeaseID] == nil && m.locked == 0 {
				t.lapse(m, "", m.CreatedAt, now)
				moved = append(moved, relay.Moved{ID: id, RoutingKey: m.RoutingKey})
			}
		}
	})
	return moved, next, err
}

// lapse makes a message pending at the front, since its lease ended with no outcome. A send may have taken effect since
// the moment given.
func (t *Table) lapse(m *message, was string, since, now time.Time) {
	m.State, m.LeaseID, m.DueAt = relay.Pending, -1, since
	m.Lapses++
	if m.UnknownSince.IsZero() {
		m.UnknownSince = since
	}
	t.attempts[m.ID] = append(t.attempts[m.ID], Attempt{
		Life: m.Replays, Attempt: m.Attempts, Relay: was, StartedAt: since, Duration: now.Sub(since), Outcome: relay.WhatLapse,
	})
}
