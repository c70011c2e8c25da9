package relay_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// telling runs relays of these names on databases that a test may take away.
func (w *world) telling(names ...string) (relays map[string]*relay.Relay, databases map[string]*crashable, stop map[string]context.CancelFunc) {
	relays, databases, stop = map[string]*relay.Relay{}, map[string]*crashable{}, map[string]context.CancelFunc{}
	for _, name := range names {
		cfg := w.config(name, &recorder{})
		cfg.Routes[0].Match = "known"
		databases[name] = newCrashable(cfg.Database)
		cfg.Database = databases[name]
		r, err := relay.New(cfg)
		if err != nil {
			w.t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(w.ctx)
		relays[name], stop[name] = r, cancel
		w.run.Go(func() { r.Run(ctx) })
	}
	return relays, databases, stop
}

// tellers are the relays that tell figures of the whole table.
func tellers(relays map[string]*relay.Relay) (names []string) {
	for name, r := range relays {
		if f := r.Snapshot().Figures; f != nil && f.Fresh {
			names = append(names, name)
		}
	}
	return names
}

// unrouted is how many messages a relay tells of that no route takes.
func unrouted(r *relay.Relay) int {
	if f := r.Snapshot().Figures; f != nil {
		return f.Unrouted()
	}
	return 0
}

// TestFigures_Unrouted: what no route takes is counted, for an alert.
func TestFigures_Unrouted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.insert(3, "unknown")
		w.insert(2, "known")
		relays, _, _ := w.telling("a")
		w.until(time.Minute, "three messages without a route", func() bool { return unrouted(relays["a"]) == 3 })
	})
}

// TestFigures_OneTells: however relays come and go, one of them tells figures of the whole table, and no two.
func TestFigures_OneTells(t *testing.T) {
	inWorld(t, func(w *world) {
		relays, databases, stop := w.telling("a", "b", "c")
		one := func(limit time.Duration, what string) (name string) {
			t.Helper()
			w.until(limit, what, func() bool {
				told := tellers(relays)
				if len(told) > 1 {
					t.Fatalf("%v tell figures", told)
				}
				return len(told) == 1
			})
			return tellers(relays)[0]
		}
		first := one(10*time.Second, "a relay that tells figures")
		for range 60 { // it keeps them
			time.Sleep(time.Second)
			if one(0, "the same one") != first {
				t.Fatal("another relay tells figures than before")
			}
		}
		databases[first].set(func(relaytest.Call) error { return errKilled })
		w.until(time.Minute, "the first no longer tells", func() bool { return len(tellers(relays)) == 0 || tellers(relays)[0] != first })
		second := one(time.Minute, "another after the first is dead")
		databases[first].set(nil)
		time.Sleep(time.Minute)
		if one(0, "the second still") != second {
			t.Error("the first takes the figures from the second")
		}
		delete(relays, second)
		stop[second]()
		if third := one(10*time.Second, "another after a clean stop"); third == second {
			t.Error("a relay that stopped tells figures")
		}
	})
}

// TestFigures_Stale: figures that cannot be read disappear after a minute, and when they were last read stays.
func TestFigures_Stale(t *testing.T) {
	inWorld(t, func(w *world) {
		relays, databases, _ := w.telling("a")
		w.insert(1, "unknown")
		snapshot := func() *relay.Figures { return relays["a"].Snapshot().Figures }
		w.until(time.Minute, "figures", func() bool { f := snapshot(); return f != nil && f.Fresh && f.Unrouted() == 1 })
		var since time.Time
		var once sync.Once
		databases["a"].set(func(call relaytest.Call) error {
			if call != relaytest.CallDepths {
				return nil
			}
			once.Do(func() { since = snapshot().Read })
			return errors.New("too slow")
		})
		time.Sleep(45 * time.Second)
		if f := snapshot(); f == nil || !f.Fresh {
			t.Fatalf("after 45 s without a reading the figures are %+v", f)
		}
		time.Sleep(time.Minute)
		if f := snapshot(); f == nil || f.Fresh || len(f.Depths) != 0 || !f.Read.Equal(since) {
			t.Errorf("after more than a minute without a reading the figures are %+v, last read at %v", f, since)
		}
		databases["a"].set(nil)
		w.until(time.Minute, "figures again", func() bool { return snapshot().Fresh })
	})
}
