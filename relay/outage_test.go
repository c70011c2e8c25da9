package relay_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// TestOutage: a destination that is away costs those never under way nothing, and the rest two attempts at most.
func TestOutage(t *testing.T) {
	for _, c := range []struct {
		name string
		away relay.Outcome
		most int
	}{
		{"refused", relay.Unsent("refused", ""), 1},
		{"answered with 503", relay.Retry("http_5xx", "503"), 3},
		{"no answer", relay.Unknown("timeout", ""), 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var back atomic.Bool
				sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome {
					time.Sleep(5 * time.Millisecond)
					if back.Load() {
						return relay.Done("")
					}
					return c.away
				}}
				ids := w.insert(500, "x")
				cfg := w.config("a", sink)
				cfg.Routes[0].Policy.Budget = 20
				w.start(cfg)
				time.Sleep(time.Minute)
				if sink.all() > 30 {
					t.Errorf("%d sends to a destination that is away", sink.all())
				}
				during := sink.all()
				back.Store(true)
				w.untilAll(time.Minute, ids, relay.Finished)
				over := 0
				for _, id := range ids {
					if row := w.table.Row(id); row.Attempts > c.most {
						t.Errorf("%d attempts", row.Attempts)
					} else if row.Attempts > 1 {
						over++
					}
				}
				if over > during {
					t.Errorf("%d messages were charged more than once, but only %d sends were made in the outage", over, during)
				}
			})
		})
	}
}

// TestBadMessagesInFront: bad messages that look like an outage are charged and end, and the good ones behind them pass.
func TestBadMessagesInFront(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(_ context.Context, m *relay.Message) relay.Outcome {
			time.Sleep(5 * time.Millisecond)
			if m.Type == "bad" {
				return relay.Retry("http_5xx", "500")
			}
			return relay.Done("")
		}}
		bad := w.insert(500, "bad")
		good := w.insert(500, "good")
		w.start(w.config("a", sink))
		var fresh []string
		began := time.Now()
		flow := func(limit time.Duration, ids []string, state relay.State) {
			for end := time.Now().Add(limit); !w.all(ids, state); time.Sleep(100 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("not all %s within %s", state, limit)
				}
				fresh = append(fresh, w.insert(5, "good")...)
			}
			t.Logf("all %s after %s, %d fresh ones meanwhile", state, time.Since(began), len(fresh))
		}
		flow(time.Minute, good, relay.Finished)
		flow(5*time.Minute, bad, relay.Failed)
		w.untilAll(time.Minute, fresh, relay.Finished)
		for _, id := range bad {
			if row := w.table.Row(id); row.Reason != relay.Exhausted || row.Attempts != 3 {
				t.Fatalf("%+v", row)
			}
		}
	})
}

// TestBreakerPerKey: a topic that is away keeps no other topic of the cluster waiting.
func TestBreakerPerKey(t *testing.T) {
	inWorld(t, func(w *world) {
		var away atomic.Int64
		sink := &recorder{answer: func(_ context.Context, m *relay.Message) relay.Outcome {
			if m.Type == "gone" {
				away.Add(1)
				return relay.Unsent("not_found", "unknown topic")
			}
			return relay.Done("")
		}}
		cfg := w.config("a", sink)
		cfg.Destinations[0].PerKey = true
		w.insert(100, "gone")
		w.start(cfg)
		for range 30 {
			w.untilAll(3*time.Second, w.insert(20, "good"), relay.Finished)
			time.Sleep(time.Second)
		}
		if n := away.Load(); n > 20 {
			t.Errorf("%d sends to a topic that is away", n)
		}
	})
}

// TestOutageAfterBadMessages: messages that looked like an outage have taught the breaker to mistrust its eyes. Ten quiet
// minutes later it trusts them again, and a real outage costs no message more than two attempts and its probes.
func TestOutageAfterBadMessages(t *testing.T) {
	inWorld(t, func(w *world) {
		var away atomic.Bool
		sink := &recorder{answer: func(_ context.Context, m *relay.Message) relay.Outcome {
			time.Sleep(5 * time.Millisecond)
			if m.Type == "bad" || away.Load() {
				return relay.Retry("http_5xx", "500")
			}
			return relay.Done("")
		}}
		bad := w.insert(500, "bad")
		good := w.insert(500, "good")
		w.start(w.config("a", sink))
		w.untilAll(2*time.Minute, good, relay.Finished)
		for !w.all(bad, relay.Failed) { // somebody has seen enough of them
			w.applied(time.Minute, w.order(relay.OpCancel, `{"type":"bad"}`))
		}

		quiet := time.Now()
		for time.Since(quiet) < 10*time.Minute+time.Second { // a little work, all of it good
			w.untilAll(10*time.Second, w.insert(1, "good"), relay.Finished)
			time.Sleep(10 * time.Second)
		}
		away.Store(true)
		before := sink.all()
		ids := w.insert(500, "good")
		time.Sleep(10 * time.Minute)
		if n := sink.all() - before; n > 60 {
			t.Errorf("%d sends in an outage of ten minutes", n)
		}
		away.Store(false)
		w.untilAll(2*time.Minute, ids, relay.Finished)
		for _, id := range ids {
			if row := w.table.Row(id); row.Attempts > 3 { // the last one is done
				t.Errorf("%+v", row)
			}
		}
	})
}
