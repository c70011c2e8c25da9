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
