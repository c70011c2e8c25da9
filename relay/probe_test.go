package relay_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// TestProbe_ForgottenKey: the breaker of a routing key that is not known any more, but kept by a send that hangs, probes
// nothing until the key is discovered again.
func TestProbe_ForgottenKey(t *testing.T) {
	inWorld(t, func(w *world) {
		forever := make(chan struct{})
		defer close(forever)
		var sends atomic.Int64
		cfg := w.config("a", sinkFunc(func(context.Context, *relay.Message) relay.Outcome {
			if sends.Add(1) == 1 {
				<-forever
			}
			return relay.Retry("http_5xx", "503")
		}))
		cfg.Destinations[0].PerKey = true
		cfg.Destinations[0].Breaker.Pause = 10 * time.Millisecond // a probe is due in every round
		cfg.Routes[0].Policy.Budget = 1
		ids := w.insert(10, "x")
		w.start(cfg)
		w.untilAll(5*time.Minute, ids, relay.Failed)
		time.Sleep(11 * time.Minute) // a key is known for ten
		for range 5 {
			w.untilAll(time.Minute, w.insert(1, "x"), relay.Failed)
			time.Sleep(11*time.Minute + 130*time.Millisecond) // and at any moment between two discoveries
		}
	})
}

// TestProbe_BrokenTopic: where the cluster is back, probes of a topic that is gone close its breaker, too, because the
// cluster answered them: a good topic behind thousands of bad messages waits no longer than for one probe.
func TestProbe_BrokenTopic(t *testing.T) {
	inWorld(t, func(w *world) {
		var away atomic.Bool
		away.Store(true)
		cfg := w.config("a", sinkFunc(func(_ context.Context, m *relay.Message) relay.Outcome {
			switch {
			case away.Load():
				o := relay.Unsent("refused", "no broker")
				o.Wide = true
				return o
			case m.Type == "gone":
				return relay.Unsent("not_found", "unknown topic")
			}
			return relay.Done("")
		}))
		cfg.Destinations[0].PerKey = true
		w.insert(1000, "gone")
		ids := w.insert(1, "good")
		w.start(cfg)
		time.Sleep(time.Minute)
		away.Store(false)
		w.untilAll(15*time.Second, ids, relay.Finished)
	})
}

// TestBadHeadersHideNoOutage: a message that fails before its send is no answer of the destination, so that a breaker opens
// although there are many among those that meet an outage.
func TestBadHeadersHideNoOutage(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome {
			time.Sleep(5 * time.Millisecond)
			return relay.Retry("http_5xx", "503")
		}}
		for range 50 {
			w.insert(3, "x")
			w.table.Insert(relaytest.Seed{Type: "x", Headers: `{"tries":3}`})
		}
		cfg := w.config("a", sink)
		cfg.Routes[0].Policy.Budget = 20
		w.start(cfg)
		time.Sleep(time.Minute)
		if n := sink.all(); n > 30 {
			t.Errorf("%d sends in a minute to a destination that is away", n)
		}
	})
}

// TestOutcomeOutsideTheSet: a Sink that answers nothing of the closed set is answered as by unknown, by the breaker and its
// probes, too.
func TestOutcomeOutsideTheSet(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome { return relay.Outcome{} }}
		cfg := w.config("a", sink)
		cfg.Routes[0].Policy.Budget = 20
		w.insert(100, "x")
		w.start(cfg)
		time.Sleep(time.Minute)
		if n := sink.all(); n > 30 {
			t.Errorf("%d sends in a minute of an open breaker", n)
		}
	})
}
