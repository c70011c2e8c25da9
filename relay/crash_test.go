package relay_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

var errKilled = errors.New("killed")

// killable starts a relay whose process can be killed: from then on nothing of it reaches the database.
func (w *world) killable(name string, sink relay.Sink) (kill func()) {
	cfg := w.config(name, sink)
	db := newCrashable(cfg.Database)
	cfg.Database = db
	w.start(cfg)
	return func() { db.set(func(relaytest.Call) error { return errKilled }) }
}

// TestCrash: a relay that is killed at each step of a message's life loses nothing. Another takes over within the lease,
// a renewal and a little; what may have gone out is sent again under the same key, and costs no attempt.
func TestCrash(t *testing.T) {
	for _, step := range []relaytest.Call{relaytest.CallLoad, relaytest.CallSettle} {
		t.Run(string(step), func(t *testing.T) {
			inWorld(t, func(w *world) {
				sink := &recorder{}
				cfg := w.config("a", sink)
				db := newCrashable(cfg.Database)
				dead := false
				db.set(func(call relaytest.Call) error { // called under the lock of db: the step itself is the kill
					if dead = dead || call == step; dead {
						return errKilled
					}
					return nil
				})
				cfg.Database = db
				ids := w.insert(testWidth, "x")
				w.start(cfg)
				time.Sleep(time.Second)
				w.start(w.config("b", sink))
				w.untilAll(testLease+testLease/3+2*time.Second, ids, relay.Finished)
				for _, id := range ids {
					row := w.table.Row(id)
					if row.Attempts != 1 || row.Lapses != 0 || len(w.table.Attempts(id)) != 1 {
						t.Errorf("%+v, recorded %+v", row, w.table.Attempts(id))
					}
				}
			})
		})
	}
}

// TestPoisonKillsItsRelay: a message that kills the relay each time that it is sent ends failed(lease_lost), and no other
// message does: its neighbours lapse twice at most.
func TestPoisonKillsItsRelay(t *testing.T) {
	inWorld(t, func(w *world) {
		var mu sync.Mutex
		var kill func()
		killed := make(chan struct{}, 100)
		sink := &recorder{}
		sink.answer = func(ctx context.Context, m *relay.Message) relay.Outcome {
			if m.Type != "poison" {
				time.Sleep(50 * time.Millisecond)
				return relay.Done("")
			}
			mu.Lock()
			kill()
			mu.Unlock()
			killed <- struct{}{}
			<-ctx.Done()
			return relay.Unknown("other", "")
		}
		restart := func(name string) {
			mu.Lock()
			defer mu.Unlock()
			kill = w.killable(name, sink)
		}
		early := w.insert(testWidth/2, "good")
		poison := w.insert(1, "poison")
		late := w.insert(100, "good")
		most := 0
		w.run.Go(func() {
			for i := range 4 {
				<-killed
				restart(string(rune('b' + i)))
			}
		})
		restart("a")
		w.until(2*time.Minute, "the poison failed", func() bool {
			for _, id := range append(early, late...) {
				most = max(most, w.table.Row(id).Lapses)
			}
			return w.all(poison, relay.Failed)
		})
		if row := w.table.Row(poison[0]); row.Reason != relay.LeaseLost || row.Attempts != 0 {
			t.Errorf("%+v", row)
		}
		w.untilAll(time.Minute, append(early, late...), relay.Finished)
		if most > 2 {
			t.Errorf("a neighbour lapsed %d times", most)
		}
	})
}

// TestSuspectsGoOneByOne: messages that lapsed twice are sent each alone, and one right after the other: hundreds of them
// may have been beside the one that kills its relay.
func TestSuspectsGoOneByOne(t *testing.T) {
	inWorld(t, func(w *world) {
		var underWay atomic.Int64
		sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome {
			if n := underWay.Add(1); n > 1 {
				w.t.Errorf("%d suspects under way at once", n)
			}
			time.Sleep(5 * time.Millisecond)
			underWay.Add(-1)
			return relay.Done("")
		}}
		ids := w.table.Insert(slices.Repeat([]relaytest.Seed{{Type: "x", Lapses: 2}}, 500)...)
		w.start(w.config("a", sink))
		w.untilAll(20*time.Second, ids, relay.Finished)
	})
}

// TestS06_LateSettlement: a relay that wakes up past its lease changes nothing that another did.
func TestS06_LateSettlement(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{}
		cfg := w.config("a", sink)
		db := newCrashable(cfg.Database)
		cfg.Database = db
		frozen := false
		db.set(func(call relaytest.Call) error { // frozen from its first settlement on
			if frozen = frozen || call == relaytest.CallSettle; frozen {
				return errors.New("frozen")
			}
			return nil
		})
		ids := w.insert(1, "x")
		w.start(cfg)
		time.Sleep(time.Second)

		again := make(chan struct{})
		w.start(w.config("b", &recorder{answer: func(context.Context, *relay.Message) relay.Outcome {
			<-again
			return relay.Done("by b")
		}}))
		w.until(10*time.Second, "b holds the message", func() bool {
			row := w.table.Row(ids[0])
			return row.Lapses == 1 && row.State == relay.InFlight
		})
		db.set(nil) // a wakes up and offers its outcome while b sends
		time.Sleep(time.Second)
		if row := w.table.Row(ids[0]); row.State != relay.InFlight || row.Lapses != 1 {
			t.Errorf("the late settlement was written: %+v", row)
		}
		close(again)
		w.untilAll(time.Second, ids, relay.Finished)
		if row := w.table.Row(ids[0]); row.Result != "by b" || row.Attempts != 1 {
			t.Errorf("%+v", row)
		}
	})
}

// TestLeaseCutsSendsOff: where renewals fail a send is cut off before another relay may reclaim its message, and that is
// a lapse: not charged, and perhaps taken effect.
func TestLeaseCutsSendsOff(t *testing.T) {
	inWorld(t, func(w *world) {
		var cut atomic.Int64
		sink := sinkFunc(func(ctx context.Context, _ *relay.Message) relay.Outcome {
			began := time.Now()
			<-ctx.Done()
			cut.Store(int64(time.Since(began)))
			return relay.Unknown("timeout", "cut off")
		})
		cfg := w.config("a", sink)
		db := newCrashable(cfg.Database)
		cfg.Database = db
		db.set(func(call relaytest.Call) error {
			if call == relaytest.CallRenew {
				return errors.New("down")
			}
			return nil
		})
		id := w.insert(1, "x")
		w.start(cfg)
		w.until(testLease, "the message is pending again", func() bool { return w.table.Row(id[0]).Lapses == 1 })
		row := w.table.Row(id[0])
		if cut := time.Duration(cut.Load()); cut >= testLease || row.Attempts != 0 || row.UnknownSince.IsZero() || w.table.Attempts(id[0])[0].Outcome != "lapse" {
			t.Errorf("cut off after %s, %+v, %+v", cut, row, w.table.Attempts(id[0]))
		}
	})
}

// TestClaimAskedAgain: a claim that was made, but whose answer was lost, is asked for again under the same lease, and
// nothing lapses.
func TestClaimAskedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{}
		cfg := w.config("a", sink)
		var lost atomic.Int64
		cfg.Database = &relaytest.Faulty{Next: cfg.Database, AfterFunc: func(_ context.Context, call relaytest.Call) error {
			if call == relaytest.CallClaim && len(w.table.Leases()) > 0 && lost.Add(1) <= 3 {
				return errors.New("connection reset")
			}
			return nil
		}}
		ids := w.insert(100, "x")
		w.start(cfg)
		w.untilAll(5*time.Second, ids, relay.Finished)
		time.Sleep(5 * testLease)
		for _, id := range ids {
			if row := w.table.Row(id); sink.of(id) != 1 || len(w.table.Attempts(id)) != 0 {
				t.Errorf("%d sends, %+v", sink.of(id), row)
			}
		}
		if lost.Load() < 3 {
			t.Errorf("only %d answers were lost", lost.Load())
		}
	})
}

// TestDatabaseAway: the database is away for two leases and back. Nothing that a living relay holds is reclaimed, and what
// was acknowledged meanwhile is written, not sent again.
func TestDatabaseAway(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome {
			time.Sleep(700 * time.Millisecond)
			return relay.Done("")
		}}
		var dbs []*crashable
		for _, name := range []string{"a", "b"} {
			cfg := w.config(name, sink)
			db := newCrashable(cfg.Database)
			cfg.Database = db
			dbs = append(dbs, db)
			w.start(cfg)
		}
		ids := w.insert(100, "x")
		time.Sleep(time.Second)
		for _, db := range dbs {
			db.set(func(relaytest.Call) error { return errors.New("connection refused") })
		}
		time.Sleep(2 * testLease)
		for _, db := range dbs {
			db.set(nil)
		}
		w.untilAll(time.Minute, ids, relay.Finished)
		for _, id := range ids {
			if sink.of(id) != 1 || len(w.table.Attempts(id)) > 0 {
				t.Errorf("%d sends, %+v", sink.of(id), w.table.Attempts(id))
			}
		}
	})
}

// TestReclaimWatches: a lease is dead only once it was seen unchanged for its own length; a look that fails, or that
// another server answers, starts the watch anew.
func TestReclaimWatches(t *testing.T) {
	inWorld(t, func(w *world) {
		ids := w.insert(1, "x")
		if _, err := w.table.Store("dead").Claim(t.Context(), 7, testLease, []relay.Quota{{RoutingKey: "x", Limit: 1}}); err != nil {
			t.Fatal(err)
		}
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
		if _, err := w.table.Store("dead").Claim(t.Context(), 7, testLease, []relay.Quota{{RoutingKey: "x", Limit: 1}}); err != nil {
			t.Fatal(err)
		}
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

// TestLockedRow: a row that somebody locks for a minute is settled after that, and delays only itself.
func TestLockedRow(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome {
			time.Sleep(100 * time.Millisecond)
			return relay.Done("")
		}}
		locked := w.insert(1, "x")
		ids := w.insert(200, "x")
		w.start(w.config("a", sink))
		w.start(w.config("b", sink))
		w.until(time.Second, "the message is being sent", func() bool { return sink.of(locked[0]) == 1 })
		unlock := w.table.Lock(locked[0])
		w.untilAll(5*time.Second, ids, relay.Finished)
		time.Sleep(time.Minute)
		if row := w.table.Row(locked[0]); row.State != relay.InFlight {
			t.Fatalf("%+v", row)
		}
		unlock()
		w.untilAll(time.Second, locked, relay.Finished)
		if row := w.table.Row(locked[0]); sink.of(locked[0]) != 1 || row.Lapses != 0 || len(w.table.Attempts(locked[0])) > 0 {
			t.Errorf("%d sends, %+v", sink.of(locked[0]), row)
		}
	})
}

// TestOrphans: a message in flight whose lease row is gone is found by the slow walk.
func TestOrphans(t *testing.T) {
	inWorld(t, func(w *world) {
		ids := w.insert(3, "x")
		if _, err := w.table.Store("dead").Claim(t.Context(), 7, testLease, []relay.Quota{{RoutingKey: "x", Limit: 3}}); err != nil {
			t.Fatal(err)
		}
		w.table.DropLease(7)
		w.start(w.config("a", &recorder{}))
		w.untilAll(10*time.Second, ids, relay.Finished)
	})
}
