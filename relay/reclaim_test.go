package relay_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// TestReclaimWatches: a lease is dead only once it was seen unchanged for its own length; a look that fails, or that
// another server answers, starts the watch anew.
func TestReclaimWatches(t *testing.T) {
	inWorld(t, func(w *world) {
		ids := w.insert(1, "x")
		w.dead(7, relay.Quota{RoutingKey: "x", Limit: 1})
		time.Sleep(time.Hour) // the wall clock says that the lease is long over; only watching counts
		cfg := w.config("a", &recorder{})
		eras := &eras{Database: cfg.Database, era: "one"}
		cfg.Database = eras
		w.start(cfg)
		time.Sleep(testLease - 200*time.Millisecond)
		eras.set("two")
		time.Sleep(testLease - 200*time.Millisecond)
		if row := w.table.Row(ids[0]); row.LeaseID != 7 {
			t.Fatal("reclaimed after two watches that were each too short")
		}
		w.untilAll(testLease, ids, relay.Finished)
	})
}

// TestReclaimWatchesClosely: looks that are too far apart prove nothing, because the owner could not show itself between
// them.
func TestReclaimWatchesClosely(t *testing.T) {
	inWorld(t, func(w *world) {
		ids := w.insert(1, "x")
		w.dead(7, relay.Quota{RoutingKey: "x", Limit: 1})
		cfg := w.config("a", &recorder{})
		cfg.Database = &eras{Database: cfg.Database, slow: 1} // the second look takes almost all of the lease
		w.start(cfg)
		time.Sleep(2 * testLease)
		if row := w.table.Row(ids[0]); row.LeaseID != 7 {
			t.Fatal("reclaimed after looks that were too far apart")
		}
		w.untilAll(testLease, ids, relay.Finished)
	})
}

// eras is a Database that says which server answered, and may be slow to say it.
type eras struct {
	relay.Database
	mu    sync.Mutex
	era   string
	slow  int // this look, counted from 0, takes long
	looks int
}

func (d *eras) set(era string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.era = era
}

func (d *eras) Watch(ctx context.Context) (string, []relay.Lease, error) {
	_, leases, err := d.Database.Watch(ctx)
	d.mu.Lock()
	slow := d.slow > 0 && d.looks == d.slow
	d.looks++
	d.mu.Unlock()
	if slow {
		time.Sleep(testLease * 9 / 10)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.era, leases, err
}

// TestOrphans: a message in flight whose lease row is gone is found by the slow walk.
func TestOrphans(t *testing.T) {
	inWorld(t, func(w *world) {
		ids := w.insert(3, "x")
		w.dead(7, relay.Quota{RoutingKey: "x", Limit: 3})
		w.table.DropLease(7)
		w.start(w.config("a", &recorder{}))
		w.untilAll(10*time.Second, ids, relay.Finished)
	})
}

// TestReclaimWatchesSlowly: looks that each take a tenth of a lease still reclaim what is dead.
func TestReclaimWatchesSlowly(t *testing.T) {
	inWorld(t, func(w *world) {
		ids := w.insert(1, "x")
		w.dead(7, relay.Quota{RoutingKey: "x", Limit: 1})
		cfg := w.config("a", &recorder{})
		faulty(&cfg, func(_ context.Context, call relaytest.Call) error {
			if call == relaytest.CallWatch {
				time.Sleep(testLease / 10)
			}
			return nil
		})
		w.start(cfg)
		w.untilAll(3*testLease, ids, relay.Finished)
	})
}

// TestOrphans_FaultsOnTheWay: the slow walk goes on where a fault stopped it, and so comes to the table's end however
// often the connection is lost.
func TestOrphans_FaultsOnTheWay(t *testing.T) {
	inWorld(t, func(w *world) {
		ids := w.insert(350, "x") // several pages
		orphan := ids[340]
		w.dead(7, relay.Quota{RoutingKey: "x", ID: orphan, Limit: 1})
		w.table.DropLease(7)
		cfg := w.config("a", &recorder{})
		var calls atomic.Int64
		faulty(&cfg, func(_ context.Context, call relaytest.Call) error {
			if call == relaytest.CallOrphans && calls.Add(1)%3 == 0 {
				return errors.New("connection reset")
			}
			return nil
		})
		w.start(cfg)
		w.untilAll(10*time.Minute, []string{orphan}, relay.Finished)
	})
}
