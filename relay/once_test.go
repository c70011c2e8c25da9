package relay_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// TestOnce ends when nothing that may be claimed is due or in flight.
func TestOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(_ context.Context, m *relay.Message) relay.Outcome {
			time.Sleep(100 * time.Millisecond)
			if m.Type == "bad" {
				return relay.Retry("http_5xx", "500")
			}
			return relay.Done("")
		}}
		ids := w.insert(100, "good")
		bad := w.insert(2, "bad")
		later := w.table.Insert(relaytest.Seed{Type: "good", Delay: time.Hour})
		lapsed := w.table.Insert(relaytest.Seed{Type: "good", Lapses: 1}, relaytest.Seed{Type: "good", Lapses: 2}, relaytest.Seed{Type: "good", Lapses: 3})
		cfg := w.config("a", sink)
		cfg.Once = true
		cfg.Routes[0].Policy.Base = time.Hour
		w.start(cfg)
		w.untilEnded(time.Minute)
		if !w.all(append(ids, lapsed...), relay.Finished) || !w.all(append(bad, later...), relay.Pending) {
			t.Error("ended too early, or too late")
		}
		for _, id := range bad {
			if sink.of(id) != 1 {
				t.Errorf("a message that waits for its next try was sent %d times", sink.of(id))
			}
		}
	})
}

// TestOnce_DestinationAway ends although messages are due: a breaker is given its first probes, and no more.
func TestOnce_DestinationAway(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := sinkFunc(func(context.Context, *relay.Message) relay.Outcome { return relay.Unsent("refused", "refused") })
		w.insert(100, "x")
		cfg := w.config("a", sink)
		cfg.Once = true
		w.start(cfg)
		w.untilEnded(20 * time.Second)
	})
}

// TestOnce_AllFailed ends although a breaker is open: once no message is due, nothing is left to probe with.
func TestOnce_AllFailed(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config("a", sinkFunc(func(context.Context, *relay.Message) relay.Outcome { return relay.Retry("http_5xx", "503") }))
		cfg.Once = true
		cfg.Routes[0].Policy.Budget = 1
		ids := w.insert(5, "x")
		w.start(cfg)
		w.untilEnded(time.Minute)
		if !w.all(ids, relay.Failed) {
			t.Error("ended, and a message was neither sent to its end nor waits for a destination that is away")
		}
	})
}

// TestOnce_MoreKeysThanPlaces does not end before each routing key had its turn, however many take turns for few places.
func TestOnce_MoreKeysThanPlaces(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config("a", &recorder{})
		cfg.Once = true
		cfg.Destinations[0].Width = 2
		cfg.Routes = nil
		for k := range 20 {
			cfg.Routes = append(cfg.Routes, relay.Route{Match: fmt.Sprintf("k%02d", k), To: "dest"})
		}
		ids := w.insert(1, "k15")
		w.start(cfg)
		w.untilEnded(time.Minute)
		if !w.all(ids, relay.Finished) {
			t.Error("ended, and a due message was left")
		}
	})
}

// TestOnce_Lapsed does not end before it looked for messages that lapsed, which it does less often than for fresh ones.
func TestOnce_Lapsed(t *testing.T) {
	for lapses := range 4 {
		t.Run(fmt.Sprint(lapses, " lapses"), func(t *testing.T) {
			inWorld(t, func(w *world) {
				cfg := w.config("a", &recorder{})
				cfg.Once = true
				ids := w.table.Insert(relaytest.Seed{Type: "x", Lapses: lapses})
				w.start(cfg)
				w.untilEnded(time.Minute)
				if !w.all(ids, relay.Finished) {
					t.Error("ended, and a due message was left")
				}
			})
		})
	}
}

// TestOnce_SendHangs ends although a message is due: a send that does not end holds the only place.
func TestOnce_SendHangs(t *testing.T) {
	inWorld(t, func(w *world) {
		forever := make(chan struct{})
		defer close(forever)
		cfg := w.config("a", sinkFunc(func(context.Context, *relay.Message) relay.Outcome {
			<-forever
			return relay.Done("")
		}))
		cfg.Once = true
		cfg.Destinations[0].Width = 1
		w.insert(2, "x")
		w.start(cfg)
		w.untilEnded(5 * time.Minute)
	})
}
