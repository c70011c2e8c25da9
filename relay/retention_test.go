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

// TestRetention: done messages go after their time and not before, resolved ones after theirs, and a failed one that nobody
// resolved stays. Two relays share a table.
func TestRetention(t *testing.T) {
	keep := relay.Retention{Done: 3 * time.Minute, Attempts: 6 * time.Minute, Resolved: 9 * time.Minute}
	inWorld(t, func(w *world) {
		sink := &recorder{answer: refuseType("bad")}
		good, bad := w.insert(1100, "good"), w.insert(2, "bad")
		for _, name := range []string{"a", "b"} {
			cfg := w.config(name, sink)
			cfg.Retention = keep
			w.start(cfg)
		}
		w.untilAll(time.Minute, good, relay.Finished)
		w.untilAll(time.Minute, bad, relay.Failed)
		w.applied(time.Minute, w.order(relay.OpResolve, `{"ids":["`+bad[0]+`"]}`))
		old := w.insert(1, "good")[0]
		w.until(time.Minute, "the last message done", func() bool { return w.table.Row(old).State == relay.Finished })
		done := time.Now()
		time.Sleep(keep.Done - time.Minute)
		if n := len(w.table.Rows()); n != 1103 {
			t.Fatalf("%d messages are left before their time, want 1103", n)
		}
		w.until(10*time.Minute, "the done ones have gone", func() bool { return len(w.table.Rows()) == 2 })
		if since := time.Since(done); since < keep.Done || since > keep.Done+2*time.Minute {
			t.Errorf("the last done one went after %s", since)
		}
		time.Sleep(keep.Attempts - keep.Done + 2*time.Minute)
		if got := w.table.Attempts(bad[1]); len(got) > 0 {
			t.Errorf("attempts are there still: %+v", got)
		}
		time.Sleep(keep.Resolved - keep.Attempts + 2*time.Minute)
		if rows := w.table.Rows(); len(rows) != 1 || rows[0].ID != bad[1] {
			t.Errorf("%d messages are left, want the failed one that nobody resolved: %+v", len(rows), rows)
		}
	})
}

// TestRetention_OneRelay: one relay at a time walks, and another goes on where it ends.
func TestRetention_OneRelay(t *testing.T) {
	inWorld(t, func(w *world) {
		var looks [2]atomic.Int64
		stops := make([]func(), len(looks))
		for i, name := range []string{"a", "b"} {
			cfg := w.config(name, &recorder{})
			cfg.Database = &relaytest.Faulty{Next: cfg.Database, BeforeFunc: countCalls(relaytest.CallRemove, &looks[i])}
			stops[i] = w.start(cfg)
			time.Sleep(time.Minute)
		}
		time.Sleep(10 * time.Minute)
		if a, b := looks[0].Load(), looks[1].Load(); a == 0 || b > 0 {
			t.Fatalf("the relays looked %d and %d times, want the first one alone", a, b)
		}
		stops[0]()
		time.Sleep(3 * time.Minute)
		if looks[1].Load() == 0 {
			t.Error("nobody went on")
		}
	})
}

// TestRetention_Fault: a fault of it costs the daily work nothing, and what is old goes later.
func TestRetention_Fault(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config("a", &recorder{})
		cfg.Retention.Done = time.Second
		var away atomic.Bool
		away.Store(true)
		faulty(&cfg, func(_ context.Context, call relaytest.Call) error {
			if call == relaytest.CallRemove && away.Load() {
				return errors.New("statement timeout")
			}
			return nil
		})
		w.start(cfg)
		w.untilAll(3*time.Second, w.insert(10, "good"), relay.Finished)
		time.Sleep(5 * time.Minute)
		w.untilAll(3*time.Second, w.insert(10, "good"), relay.Finished)
		if n := len(w.table.Rows()); n != 20 {
			t.Fatalf("%d messages, want 20", n)
		}
		away.Store(false)
		w.until(5*time.Minute, "all have gone", func() bool { return len(w.table.Rows()) == 0 })
	})
}

// countCalls counts those of one kind.
func countCalls(kind relaytest.Call, n *atomic.Int64) func(context.Context, relaytest.Call) error {
	return func(_ context.Context, call relaytest.Call) error {
		if call == kind {
			n.Add(1)
		}
		return nil
	}
}

// refuseType rejects the messages of a type, and takes all others.
func refuseType(typ string) func(context.Context, *relay.Message) relay.Outcome {
	return func(_ context.Context, m *relay.Message) relay.Outcome {
		if m.Type == typ {
			return relay.Fail(relay.Rejected, "http_4xx", "422")
		}
		return relay.Done("")
	}
}
