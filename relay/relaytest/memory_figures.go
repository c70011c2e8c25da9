package relaytest

import (
	"context"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// Depths implements relay.Gauger.
func (s *Memory) Depths(ctx context.Context, routingKeys []string, limit int) (depths []relay.Depth, err error) {
	err = s.locked(ctx, func(t *Table, now time.Time) {
		for _, key := range routingKeys {
			depths = append(depths, t.depths(key, limit, now)...)
		}
	})
	return depths, err
}

func (t *Table) depths(routingKey string, limit int, now time.Time) (depths []relay.Depth) {
	seen, at, more := map[int]int{}, map[string]int{}, false
	const always = 1 << 62
	for _, m := range t.waiting(now.Add(always), func(m *message) bool { return m.RoutingKey == routingKey }) {
		if seen[m.Lapses]++; seen[m.Lapses] > limit {
			continue
		}
		more = more || seen[m.Lapses] == limit
		i, known := at[m.seed.Type]
		if !known {
			i = len(depths)
			at[m.seed.Type] = i
			depths = append(depths, relay.Depth{RoutingKey: routingKey, Type: m.seed.Type})
		}
		d := &depths[i]
		d.Pending++
		if !m.DueAt.After(now) {
			d.Due++
			d.Oldest = max(d.Oldest, now.Sub(m.DueAt))
		}
	}
	for i := range depths {
		depths[i].More = more
	}
	return depths
}

// Totals implements relay.Gauger. All that is in flight and failed is seen, since it is a table for tests.
func (s *Memory) Totals(ctx context.Context, limit int) (totals relay.Totals, err error) {
	err = s.locked(ctx, func(t *Table, now time.Time) {
		totals = relay.Totals{InFlight: map[string]int{}, Failed: map[relay.FailedKind]int{}}
		flying, failed := 0, 0
		for _, m := range t.messages {
			switch {
			case m.State == relay.InFlight && t.leases[m.LeaseID] != nil && flying < limit:
				flying++
				totals.InFlight[m.seed.Type]++
			case m.State == relay.Failed && m.ResolvedAt.IsZero() && failed < limit:
				failed++
				totals.Failed[relay.FailedKind{Type: m.seed.Type, Reason: m.Reason}]++
			}
		}
		totals.InFlightMore, totals.FailedMore = flying == limit, failed == limit
		for _, l := range t.leases {
			totals.Lapsed = max(totals.Lapsed, now.Sub(l.RenewedAt.Add(l.Length)))
		}
	})
	return totals, err
}

// duty names one.
type duty struct{ kind, name string }

// SwapDuty implements relay.Gauger.
func (s *Memory) SwapDuty(ctx context.Context, seen, want relay.Duty) (now relay.Duty, err error) {
	err = s.locked(ctx, func(t *Table, _ time.Time) {
		key := duty{seen.Kind, seen.Name}
		now = relay.Duty{Kind: seen.Kind, Name: seen.Name}
		if d, ok := t.duties[key]; ok {
			now = d
		}
		if now == seen && want != seen {
			now = want
			t.duties[key] = want
		}
	})
	return now, err
}
