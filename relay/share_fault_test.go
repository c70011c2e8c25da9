package relay_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// most lets the clock run and returns how many sends were under way at once meanwhile.
func (w *world) most(g *gauge, d time.Duration) int {
	w.t.Helper()
	g.reset()
	time.Sleep(d)
	_, most := g.reset()
	return most
}

// TestShare_Stalled: a relay whose database stalled while it held messages does not send them once others have its places.
func TestShare_Stalled(t *testing.T) {
	inWorld(t, func(w *world) {
		g := &gauge{takes: 15 * time.Second}
		cfg := w.sharing("a", g, 8, 0)
		cfg.Lease = time.Minute
		var stalled atomic.Bool
		faulty(&cfg, func(ctx context.Context, call relaytest.Call) error {
			if call == relaytest.CallLoad {
				stalled.Store(true) // from now on, until the test says otherwise
			}
			for stalled.Load() && sleepOn(ctx) {
			}
			return ctx.Err()
		})
		w.start(cfg)
		time.Sleep(5 * time.Second)
		w.insert(8, "x")
		w.until(time.Minute, "messages are claimed", stalled.Load)
		other := w.sharing("b", g, 8, 0)
		other.Lease = time.Minute
		w.start(other)
		w.insert(200, "x")
		time.Sleep(12 * time.Second)
		stalled.Store(false)
		if most := w.most(g, 12*time.Second); most > 12 { // those of b, which had all places, and a's half of them
			t.Errorf("%d sends under way at once at a width of 8", most)
		}
	})
}

func sleepOn(ctx context.Context) bool {
	time.Sleep(10 * time.Millisecond)
	return ctx.Err() == nil
}

// TestShare_Blind: a relay that beats and cannot look at the others gives its places up before one that joins takes them.
func TestShare_Blind(t *testing.T) {
	inWorld(t, func(w *world) {
		g := &gauge{takes: 200 * time.Millisecond}
		cfg := w.sharing("a", g, 8, 0)
		var blind atomic.Bool
		faulty(&cfg, func(_ context.Context, call relaytest.Call) error {
			if blind.Load() && call == relaytest.CallPeers {
				return errors.New("away")
			}
			return nil
		})
		w.insert(700, "x")
		w.start(cfg)
		time.Sleep(4100 * time.Millisecond)
		blind.Store(true)
		w.start(w.sharing("b", g, 8, 0))
		if most := w.most(g, 10*time.Second); most != 8 {
			t.Errorf("%d sends under way at once, want 8", most)
		}
	})
}

// TestShare_Twins: two relays of one name divide the places, and say what is wrong.
func TestShare_Twins(t *testing.T) {
	inWorld(t, func(w *world) {
		g := &gauge{takes: 200 * time.Millisecond}
		w.insert(700, "x")
		w.start(w.sharing("a", g, 8, 0))
		time.Sleep(900 * time.Millisecond)
		w.start(w.sharing("a", g, 8, 0))
		time.Sleep(9 * time.Second)
		if most := w.most(g, 5*time.Second); most != 8 {
			t.Errorf("%d sends under way at once, want 8", most)
		}
	})
}

// TestShare_OnceStandby: run --once does not wait for places that other relays have, nor count on those who have no use for
// them.
func TestShare_OnceStandby(t *testing.T) {
	for name, match := range map[string]string{"other": "y", "no use": "other"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				first := w.sharing("a", &gauge{}, 1, 0)
				first.Routes = []relay.Route{{Match: match, To: "dest"}}
				if name == "no use" {
					first.Destinations = append(first.Destinations, relay.Destination{Name: "else", Sink: &recorder{}, Width: 1})
					first.Routes[0].To = "else"
				}
				stop := w.start(first)
				time.Sleep(6 * time.Second)
				ids := w.insert(1, "x")
				once := w.sharing("b", &gauge{}, 1, 0)
				once.Once = true
				w.start(once)
				time.Sleep(time.Minute)
				stop()
				w.untilEnded(10 * time.Second)
				if sent := w.all(ids, relay.Finished); sent != (name == "no use") {
					t.Errorf("the message was sent: %t", sent)
				}
			})
		})
	}
}

// TestNever_Memory: to a destination that remembers no key nothing waits for memory in the relay's hands, where a crash
// would end it.
func TestNever_Memory(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(ctx context.Context, _ *relay.Message) relay.Outcome {
			<-ctx.Done()
			return relay.Unknown("timeout", "")
		}}
		cfg := w.config("a", sink)
		cfg.Destinations[0].MaxBytes, cfg.Destinations[0].Dedupe.Never = 1000, true
		db := newCrashable(cfg.Database)
		cfg.Database = db
		var seeds []relaytest.Seed
		for range testWidth {
			seeds = append(seeds, relaytest.Seed{Type: "x", Payload: make([]byte, 800)})
		}
		ids := w.table.Insert(seeds...)
		w.start(cfg)
		w.until(time.Minute, "one is sent", func() bool { return sink.all() == 1 })
		time.Sleep(100 * time.Millisecond)
		db.set(killed)
		other := w.config("b", &recorder{})
		other.Destinations[0].Dedupe.Never = true
		w.start(other)
		w.until(time.Minute, "all are final", func() bool {
			failed := 0
			for _, id := range ids {
				if w.table.Row(id).State == relay.Failed {
					failed++
				}
			}
			return failed == 1 && len(ids)-failed == w.done(ids)
		})
	})
}

func (w *world) done(ids []string) (n int) {
	for _, id := range ids {
		if w.table.Row(id).State == relay.Finished {
			n++
		}
	}
	return n
}

// TestGone_AtStop: a stop does not wait for a database that hangs while a pause is asked for.
func TestGone_AtStop(t *testing.T) {
	inWorld(t, func(w *world) {
		var sent, hangs atomic.Bool
		cfg := w.config("a", sinkFunc(func(context.Context, *relay.Message) relay.Outcome {
			sent.Store(true)
			time.Sleep(4900 * time.Millisecond)
			return relay.Outcome{Kind: relay.KindRetry, Class: "not_found", Err: "HTTP 410 Gone", Pause: true}
		}))
		cfg.Lease = 30 * time.Second
		faulty(&cfg, func(ctx context.Context, _ relaytest.Call) error {
			if hangs.Load() {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		w.insert(1, "x")
		stop := w.start(cfg)
		w.until(time.Minute, "it is sent", sent.Load)
		hangs.Store(true)
		stop()
		w.untilEnded(9 * time.Second)
	})
}
