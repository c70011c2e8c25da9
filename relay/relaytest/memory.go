package relaytest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// Memory is a relay's Database on a Table. It fails only where its context has ended. Safe for concurrent use.
type Memory struct {
	table *Table
	relay string

	instance string
}

var _ relay.Database = (*Memory)(nil)

// locked runs f with the table to itself, unless ctx has ended.
func (s *Memory) locked(ctx context.Context, f func(t *Table, now time.Time)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	f(s.table, time.Now())
	return nil
}

// Claim implements relay.Store.
func (s *Memory) Claim(ctx context.Context, id relay.LeaseID, length time.Duration, quotas []relay.Quota) (claims []relay.Claim, err error) {
	foreign := false
	err = s.locked(ctx, func(t *Table, now time.Time) {
		if foreign = t.instance != s.instance; foreign {
			return
		}
		if t.leases[id] == nil {
			t.claim(lease{LeaseRow: LeaseRow{ID: id, Relay: s.relay, ClaimedAt: now, RenewedAt: now, Length: length}}, quotas)
		}
		for _, m := range t.held(id, s.relay) {
			claims = append(claims, m.claim(now))
		}
	})
	if foreign {
		err = relay.ErrForeign
	}
	return claims, err
}

// claim takes what the quotas ask for and makes the lease row, if that is anything.
func (t *Table) claim(l lease, quotas []relay.Quota) {
	for _, q := range quotas {
		for _, m := range t.due(q, l.ClaimedAt) {
			m.State, m.LeaseID, m.DueAt = relay.InFlight, l.ID, time.Time{}
			l.ids = append(l.ids, m.ID)
		}
	}
	if len(l.ids) > 0 {
		t.leases[l.ID] = &l
	}
}

// due returns what a quota may take now, in the order of the claim index; locked rows are passed over.
func (t *Table) due(q relay.Quota, now time.Time) []*message {
	due := t.waiting(now, func(m *message) bool {
		if q.ID != "" {
			return m.ID == q.ID && m.locked == 0
		}
		return m.RoutingKey == q.RoutingKey && m.Lapses == q.Lapses && m.locked == 0
	})
	return due[:min(len(due), q.Limit)]
}

// waiting returns the due messages that match, by due_at and then seq.
func (t *Table) waiting(now time.Time, match func(*message) bool) []*message {
	var due []*message
	for _, m := range t.messages {
		if m.State == relay.Pending && !m.DueAt.After(now) && match(m) {
			due = append(due, m)
		}
	}
	slices.SortFunc(due, func(a, b *message) int {
		return cmp.Or(a.DueAt.Compare(b.DueAt), cmp.Compare(a.Seq, b.Seq))
	})
	return due
}

// held returns what is in flight under a lease of that relay.
func (t *Table) held(id relay.LeaseID, relayName string) []*message {
	l := t.leases[id]
	if l == nil || l.Relay != relayName {
		return nil
	}
	var held []*message
	for _, id := range l.ids {
		if m := t.messages[id]; m != nil && m.heldBy(l.ID) {
			held = append(held, m)
		}
	}
	return held
}

func (m *message) heldBy(id relay.LeaseID) bool { return m.State == relay.InFlight && m.LeaseID == id }

func (m *message) claim(now time.Time) relay.Claim {
	c := relay.Claim{
		ID: m.ID, Seq: m.Seq, Lease: m.LeaseID, RoutingKey: m.RoutingKey, Type: m.seed.Type,
		SchemaVersion: m.seed.SchemaVersion, Attempts: m.Attempts, Lapses: m.Lapses,
		Expires: !m.ExpiresAt.IsZero(), Age: now.Sub(m.CreatedAt),
		Unknown: !m.UnknownSince.IsZero(), Bytes: len(m.seed.Payload) + len(m.seed.Headers),
	}
	if c.Expires {
		c.ExpiresIn = m.ExpiresAt.Sub(now)
	}
	if c.Unknown {
		c.UnknownFor = now.Sub(m.UnknownSince)
	}
	return c
}

// Load implements relay.Store.
func (s *Memory) Load(ctx context.Context, claims []relay.Claim) (messages []relay.Message, err error) {
	err = s.locked(ctx, func(t *Table, _ time.Time) {
		for _, c := range claims {
			if m := t.messages[c.ID]; m != nil && m.heldBy(c.Lease) {
				messages = append(messages, m.load(c))
			}
		}
	})
	return messages, err
}

func (m *message) load(c relay.Claim) relay.Message {
	return relay.Message{
		Claim: c, WireKey: cmp.Or(m.SendID, m.ID), AggregateType: m.seed.AggregateType, AggregateID: m.seed.AggregateID,
		Payload: slices.Clone(m.seed.Payload), ContentType: m.seed.ContentType, Traceparent: m.seed.Traceparent,
		CreatedAt: m.CreatedAt, RawHeaders: m.seed.Headers,
	}
}

// Renew implements relay.Store.
func (s *Memory) Renew(ctx context.Context, leases []relay.LeaseID) (lost []relay.LeaseID, err error) {
	err = s.locked(ctx, func(t *Table, now time.Time) {
		for _, id := range leases {
			if l := t.leases[id]; l != nil && l.Relay == s.relay {
				l.RenewedAt = now
			} else {
				lost = append(lost, id)
			}
		}
	})
	return lost, err
}

// Finish implements relay.Store.
func (s *Memory) Finish(ctx context.Context, leases []relay.LeaseID) error {
	return s.locked(ctx, func(t *Table, _ time.Time) {
		for _, id := range leases {
			if l := t.leases[id]; l != nil && l.Relay == s.relay {
				delete(t.leases, id)
			}
		}
	})
}
