package relay_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// gauge is a destination that takes a while for each send, and remembers how many were under way at once and when each
// began.
type gauge struct {
	takes time.Duration

	mu      sync.Mutex
	now     int
	most    int
	by      map[string]int // relay
	started []time.Time
}

// of is the destination as one relay has it.
func (g *gauge) of(name string) relay.Sink {
	return sinkFunc(func(ctx context.Context, _ *relay.Message) relay.Outcome {
		g.mu.Lock()
		if g.by == nil {
			g.by = map[string]int{}
		}
		g.by[name]++
		g.now++
		g.most = max(g.most, g.now)
		g.started = append(g.started, time.Now())
		g.mu.Unlock()
		o := relay.Done("")
		select {
		case <-time.After(g.takes):
		case <-ctx.Done():
			o = relay.Unknown("timeout", "no answer")
		}
		g.mu.Lock()
		g.now--
		g.mu.Unlock()
		return o
	})
}

// reset forgets the sends so far, and returns how many there were of each relay and how many were under way at once.
func (g *gauge) reset() (by map[string]int, most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	by, most = g.by, g.most
	g.by, g.most, g.started = nil, g.now, nil
	return by, most
}

// fastest is the largest number of sends that began within any time of that length, and how many there were in all.
func (g *gauge) fastest(length time.Duration) (most, all int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := 0
	for i, at := range g.started {
		for at.Sub(g.started[first]) >= length {
			first++
		}
		most = max(most, i-first+1)
	}
	return most, len(g.started)
}

// sharing is a relay of a destination whose width and rate all relays share.
func (w *world) sharing(name string, g *gauge, width int, rate float64) relay.Config {
	cfg := w.config(name, g.of(name))
	d := &cfg.Destinations[0]
	d.Shared, d.Width, d.Rate = true, width, rate
	return cfg
}

// TestShare_Width: however many relays there are, no more sends are under way at once than the destination takes, and
// relays for which there is no place stand by.
func TestShare_Width(t *testing.T) {
	for _, c := range []struct{ relays, width int }{{1, 4}, {2, 4}, {3, 4}, {4, 4}, {6, 4}, {3, 1}} {
		t.Run(fmt.Sprintf("%d relays at %d places", c.relays, c.width), func(t *testing.T) {
			inWorld(t, func(w *world) {
				g := &gauge{takes: 50 * time.Millisecond}
				w.insert(900, "x")
				for i := range c.relays {
					w.start(w.sharing(fmt.Sprint("relay", i), g, c.width, 0))
				}
				time.Sleep(5 * time.Second)
				if _, most := g.reset(); most > c.width {
					t.Errorf("%d sends at once while relays come, want %d at most", most, c.width)
				}
				time.Sleep(5 * time.Second)
				by, most := g.reset()
				if most != c.width {
					t.Errorf("%d sends at once, want %d", most, c.width)
				}
				for i := range c.relays {
					name := fmt.Sprint("relay", i)
					if sends := by[name]; (sends > 0) != (i < c.width) {
						t.Errorf("%s made %d sends", name, sends)
					}
				}
			})
		})
	}
}

// TestShare_Alone: a relay that is alone does not wait for others to see it.
func TestShare_Alone(t *testing.T) {
	inWorld(t, func(w *world) {
		g := &gauge{}
		ids := w.insert(100, "x")
		w.start(w.sharing("a", g, 4, 0))
		w.untilAll(time.Second, ids, relay.Finished)
	})
}

// TestShare_Rate: the rate is that of all relays together, evenly, and is used.
func TestShare_Rate(t *testing.T) {
	for _, relays := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(relays, " relays"), func(t *testing.T) {
			inWorld(t, func(w *world) {
				const perSecond = 40
				g := &gauge{takes: time.Millisecond}
				w.insert(900, "x")
				for i := range relays {
					w.start(w.sharing(fmt.Sprint("relay", i), g, 100, perSecond))
				}
				time.Sleep(20 * time.Second)
				most, all := g.fastest(time.Second)
				if most > perSecond+relays {
					t.Errorf("%d sends within a second, want %d at most and one more for each relay", most, perSecond)
				}
				if all < 14*perSecond {
					t.Errorf("%d sends in 20 s at %d a second", all, perSecond)
				}
			})
		})
	}
}

// TestShare_Joins: who joins waits until the others have seen it, so that at no moment too many are under way; who leaves,
// or dies, leaves its places to the others.
func TestShare_Joins(t *testing.T) {
	for name, crash := range map[string]bool{"leaves": false, "dies": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				g := &gauge{takes: 20 * time.Millisecond}
				w.insert(3600, "x")
				w.start(w.sharing("b", g, 4, 100))
				time.Sleep(5 * time.Second)
				cfg := w.sharing("a", g, 4, 100)
				db := newCrashable(cfg.Database)
				cfg.Database = db
				stop := w.start(cfg)
				atMost := func(d time.Duration) map[string]int {
					time.Sleep(d)
					by, most := g.reset()
					if most > 4 {
						t.Errorf("%d sends at once, want 4 at most", most)
					}
					return by
				}
				atMost(8 * time.Second)
				if by := atMost(5 * time.Second); by["a"] < 200 || by["b"] < 200 || by["a"]+by["b"] > 510 {
					t.Errorf("two relays made %v sends in 5 s, want half of 500 each", by)
				}
				if crash {
					db.set(killed)
				} else {
					stop()
				}
				atMost(8 * time.Second)
				if by := atMost(5 * time.Second); by["a"] != 0 || by["b"] < 480 || by["b"] > 510 {
					t.Errorf("the one that is left made %v sends in 5 s, want 500", by)
				}
			})
		})
	}
}

// TestHold: a destination that asks to be left alone is, for at most five minutes, and a message whose try comes later
// waits longer.
func TestHold(t *testing.T) {
	for _, c := range []struct{ asked, want time.Duration }{{30 * time.Second, 30 * time.Second}, {time.Hour, 5 * time.Minute}} {
		t.Run(c.asked.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				var full atomic.Bool
				full.Store(true)
				sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome {
					if full.Load() {
						return relay.Outcome{Kind: relay.KindRetry, Class: "throttled", Err: "HTTP 429", RetryAfter: c.asked, Hold: true}
					}
					return relay.Done("")
				}}
				w.insert(1, "x")
				w.start(w.config("a", sink))
				w.until(time.Minute, "a send", func() bool { return sink.all() > 0 })
				full.Store(false)
				ids := w.insert(100, "y")
				time.Sleep(c.want - time.Second)
				if n := sink.all(); n != 1 {
					t.Errorf("%d sends although the destination asked to be left alone", n-1)
				}
				w.untilAll(2*time.Second, ids, relay.Finished)
			})
		})
	}
}

// TestHold_Shown: people see that a destination is left alone, and why.
func TestHold_Shown(t *testing.T) {
	inWorld(t, func(w *world) {
		w.insert(1, "x")
		w.start(w.config("a", &recorder{answer: func(context.Context, *relay.Message) relay.Outcome {
			return relay.Outcome{Kind: relay.KindRetry, Class: "throttled", Err: "HTTP 429", RetryAfter: time.Minute, Hold: true}
		}}))
		time.Sleep(5 * time.Second)
		beat, _ := w.table.Beat("a")
		if b := beat.Breakers[0]; b.State != "throttled" || b.LastError != "HTTP 429; it asked to be left alone for 1m0s" {
			t.Errorf("%+v", b)
		}
	})
}

// TestShare_Lost: what was claimed and has not begun when other relays take both places is given back.
func TestShare_Lost(t *testing.T) {
	inWorld(t, func(w *world) {
		g := &gauge{takes: time.Millisecond}
		ids := w.insert(300, "x")
		cfg := w.sharing("z", g, 2, 20)
		faulty(&cfg, func(_ context.Context, call relaytest.Call) error {
			if call == relaytest.CallLoad {
				time.Sleep(1500 * time.Millisecond) // a slow database: some are on their way at any moment
			}
			return nil
		})
		w.start(cfg)
		time.Sleep(5 * time.Second)
		w.start(w.sharing("a", g, 2, 20))
		w.start(w.sharing("b", g, 2, 20))
		w.untilAll(30*time.Second, ids, relay.Finished)
	})
}

// TestShare_Claims: messages are claimed some at a time, not one by one as their turns come.
func TestShare_Claims(t *testing.T) {
	inWorld(t, func(w *world) {
		var claims atomic.Int64
		g := &gauge{takes: time.Millisecond}
		cfg := w.sharing("a", g, 100, 100)
		faulty(&cfg, func(_ context.Context, call relaytest.Call) error {
			if call == relaytest.CallClaim {
				claims.Add(1)
			}
			return nil
		})
		ids := w.insert(1000, "x")
		w.start(cfg)
		w.untilAll(11*time.Second, ids, relay.Finished)
		if n := claims.Load(); n > 250 { // some of them for messages that lapsed
			t.Errorf("%d claims for a thousand messages at a hundred a second", n)
		}
	})
}
