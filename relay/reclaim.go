package relay

import (
	"context"
	"time"
)

const (
	moveWait   = 200 * time.Millisecond // before what somebody locks is moved again
	orphanPage = 2 * time.Second        // between two pages of the walk for messages without a lease row
	orphanRest = time.Minute            // between two walks
)

// watched is a lease as it was first seen unchanged.
type watched struct {
	renewed string
	since   time.Time // our monotonic clock, once the answer had come
}

// watcher finds leases that nobody renews: those seen unchanged for their own length by our monotonic clock. No wall
// clock takes part, so that outages, failovers, clock steps and fresh relays reclaim nothing by mistake.
type watcher struct {
	*Relay
	era    string
	looked time.Time // when the last look was asked for
	seen   map[LeaseID]watched
}

// reclaim watches all leases that this relay does not renew itself, and takes back what is under those that are dead.
func (r *Relay) reclaim(ctx context.Context) {
	w := &watcher{Relay: r, seen: map[LeaseID]watched{}}
	for wait := time.Duration(0); sleep(ctx, wait); {
		r.ticks.mark("reclaim")
		began := time.Now()
		dead, next := w.look(ctx)
		for _, l := range dead {
			w.take(ctx, l)
		}
		wait = max(next-time.Since(began), 10*time.Millisecond)
	}
}

// look reads the leases once. A look that fails, one that another server or connection answered, and one more than a
// third of a lease's length after the last (this process may have been frozen, and the database away meanwhile) start the
// watch anew: the owner had no chance to show that it lives.
func (w *watcher) look(ctx context.Context) (dead []Lease, next time.Duration) {
	asked := time.Now()
	var era string
	var leases []Lease
	next = w.cfg.Lease / 6
	err := w.call(ctx, "watch", func(ctx context.Context) (err error) {
		era, leases, err = w.cfg.Database.Watch(ctx)
		return err
	})
	if err != nil {
		clear(w.seen)
		return nil, next / 2
	}
	if era != w.era {
		clear(w.seen)
		w.era = era
	}
	gap := asked.Sub(w.looked)
	w.looked = asked
	seen := make(map[LeaseID]watched, len(leases))
	for _, l := range leases {
		if w.leases.mine(l.ID) {
			continue
		}
		l.Length = max(l.Length, shortestLease) // Somebody may have written the row by hand.
		next = min(next, l.Length/6)
		s, ok := w.seen[l.ID]
		if !ok || s.renewed != l.Renewed || gap > l.Length/3 {
			s = watched{renewed: l.Renewed, since: time.Now()}
		}
		if asked.Sub(s.since) >= l.Length {
			dead = append(dead, l)
		}
		seen[l.ID] = s
	}
	w.seen = seen
	return dead, next
}

// take puts a dead lease into our hands, and moves what is in flight under it in the background.
func (w *watcher) take(ctx context.Context, dead Lease) {
	asked := time.Now()
	var was string
	var ok bool
	err := w.call(ctx, "take", func(ctx context.Context) (err error) {
		was, ok, err = w.cfg.Database.Take(ctx, dead)
		return err
	})
	delete(w.seen, dead.ID)
	if err != nil || !ok {
		return
	}
	w.log.Warn("lease reclaimed", "lease_id", dead.ID, "relay", was)
	l := w.leases.add(ctx, dead.ID, asked, false, 1)
	w.movers.Go(func() {
		if w.move(ctx, l, was) {
			w.leases.closed(l, 1)
		} else {
			w.leases.leave(l)
		}
	})
}

// move makes pending what is in flight under a lease that we took, again until nothing is left: what somebody locks now
// is moved later. The lease is renewed meanwhile like any of ours. It returns false
// where the lease is lost, or we stop, before that: the row stays, and the next relay goes on.
func (r *Relay) move(ctx context.Context, l *lease, was string) (empty bool) {
	for l.ctx.Err() == nil {
		var moved []Moved
		var left bool
		err := r.call(ctx, "reclaim", func(ctx context.Context) (err error) {
			moved, left, err = r.cfg.Database.Move(ctx, l.id, was)
			return err
		})
		if len(moved) > 0 {
			r.log.Warn("messages reclaimed", "lease_id", l.id, "relay", was, "count", len(moved))
			r.observe(r.lapses(moved, was)...)
		}
		if err == nil && !left {
			return true
		}
		sleep(l.ctx, moveWait)
	}
	return false
}

// orphans walks the table slowly for messages in flight whose lease row does not exist, as after a restore or a DELETE by
// hand, and makes them pending.
func (r *Relay) orphans(ctx context.Context) {
	after := ""
	for wait := orphanPage; sleep(ctx, wait); {
		var moved []Moved
		var next string
		err := r.call(ctx, "orphans", func(ctx context.Context) (err error) {
			moved, next, err = r.cfg.Database.Orphans(ctx, after)
			return err
		})
		if len(moved) > 0 {
			r.log.Warn("messages without a lease reclaimed", "count", len(moved), "first", moved[0].ID)
			r.observe(r.lapses(moved, "")...)
		}
		if wait = orphanPage; err != nil {
			continue // the same page again
		}
		if after = next; after == "" {
			wait = orphanRest
		}
	}
}

// lapses are what metrics hear of messages that were taken back: one event for each destination.
func (r *Relay) lapses(moved []Moved, was string) []Event {
	routes, count := r.routing.Load(), map[string]int{}
	for _, m := range moved {
		destination := ""
		if route := routes.routeOf(m.RoutingKey); route != nil {
			destination = route.To
		}
		count[destination]++
	}
	events := make([]Event, 0, len(count))
	for destination, n := range count {
		events = append(events, Event{Kind: EventLapse, Destination: destination, Count: n, Relay: was})
	}
	return events
}
