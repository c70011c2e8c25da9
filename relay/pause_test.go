package relay_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// order asks for an operation as an operator would.
func (w *world) order(op relay.Op, filter string) (id string) {
	return w.table.Order(relaytest.Ordered{Op: op, Filter: filter, Note: "a test"})
}

// applied lets the clock run until an operation is applied.
func (w *world) applied(limit time.Duration, id string) relaytest.OperationRow {
	w.t.Helper()
	w.until(limit, "the operation is applied", func() bool { return w.table.Operation(id).Applied })
	return w.table.Operation(id)
}

// TestPause: whatever is paused, all relays stop within a second, probe nothing, and go on when it is resumed.
func TestPause(t *testing.T) {
	for name, filter := range map[string]string{
		"a destination": `{"destination":"dest"`, "a routing key": `{"routing_key":"order_paid"`, "everything": `{"everything":true`,
		"a type": `{"type":"order_paid"`, "a version": `{"type":"order_paid","schema_version":1`,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				sink := &recorder{}
				w.start(w.config("a", sink))
				w.start(w.config("b", sink))
				w.untilAll(3*time.Second, w.insert(10, "order_paid"), relay.Finished)
				w.order(relay.OpPause, filter+`,"indefinitely":true}`)
				time.Sleep(time.Second)
				before := sink.all()
				ids := w.insert(10, "order_paid")
				time.Sleep(2 * time.Minute)
				if n := sink.all() - before; n > 0 || !w.all(ids, relay.Pending) {
					t.Fatalf("%d sends while paused", n)
				}
				for _, id := range ids {
					if row := w.table.Row(id); row.Attempts != 0 || row.Lapses != 0 {
						t.Fatalf("the pause was charged: %+v", row)
					}
				}
				resume := w.order(relay.OpResume, filter+`}`)
				w.untilAll(4*time.Second, ids, relay.Finished)
				w.applied(time.Second, resume)
			})
		})
	}
}

// TestPause_OfOthers: what is not paused goes on.
func TestPause_OfOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, filter := range []string{`"destination":"other"`, `"routing_key":"other"`, `"type":"other"`, `"type":"order_paid","schema_version":2`} {
			w.order(relay.OpPause, `{`+filter+`,"indefinitely":true}`)
		}
		w.start(w.config("a", &recorder{}))
		time.Sleep(2 * time.Second)
		w.untilAll(3*time.Second, w.insert(10, "order_paid"), relay.Finished)
	})
}

// TestPause_BeforeTheFirstClaim: a pause that was asked for while no relay ran is honoured by the first one, also where the
// database answers late.
func TestPause_BeforeTheFirstClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{}
		w.order(relay.OpPause, `{"destination":"dest","for":"5m"}`)
		ids := w.insert(100, "order_paid")
		var calls atomic.Int64
		cfg := w.config("a", sink)
		faulty(&cfg, func(_ context.Context, call relaytest.Call) error {
			if call == relaytest.CallPauses && calls.Add(1) < 4 {
				return context.DeadlineExceeded
			}
			return nil
		})
		w.start(cfg)
		time.Sleep(4 * time.Minute)
		if sink.all() != 0 {
			t.Errorf("%d sends while paused", sink.all())
		}
		w.untilAll(2*time.Minute, ids, relay.Finished)
	})
}

// TestPause_ReleasesWhatWasNotSent: what is claimed and waits for its turn when the pause comes is given back, and what is
// under way ends as it would.
func TestPause_ReleasesWhatWasNotSent(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome {
			time.Sleep(10 * time.Second)
			return relay.Done("")
		}}
		cfg := w.config("a", sink)
		cfg.Destinations[0].MaxBytes = 1 // one after the other
		ids := w.insert(testWidth, "order_paid")
		w.start(cfg)
		w.until(time.Second, "one is under way", func() bool { return sink.all() == 1 })
		w.order(relay.OpPause, `{"destination":"dest","indefinitely":true}`)
		time.Sleep(time.Minute)
		finished := 0
		for _, id := range ids {
			switch row := w.table.Row(id); row.State {
			case relay.Finished:
				finished++
			default:
				if row.State != relay.Pending || row.Attempts != 0 || row.DueAt.After(row.Now) {
					t.Errorf("a message that was not sent is %+v", row)
				}
			}
		}
		if finished != 1 || sink.all() != 1 {
			t.Errorf("%d are done after %d sends, want the one that was under way", finished, sink.all())
		}
	})
}

// TestPause_Ends: one relay resumes a pause whose time is over, and what it turned back is due at once.
func TestPause_Ends(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{}
		old := w.table.Insert(relaytest.Seed{Type: "order_paid", Age: 100 * time.Hour}) // waits ten minutes when it is turned back
		w.order(relay.OpPause, `{"type":"order_paid","for":"30s"}`)
		w.start(w.config("a", sink))
		w.start(w.config("b", sink))
		time.Sleep(20 * time.Second)
		if row := w.table.Row(old[0]); row.State != relay.Pending || row.ErrorClass != relay.ClassPaused || sink.all() != 0 {
			t.Fatalf("the message is %+v", row)
		}
		w.untilAll(14*time.Second, old, relay.Finished)
		open, err := w.table.Store("c").Operations(w.t.Context())
		if told, err2 := w.table.Store("c").Pauses(w.t.Context()); err != nil || err2 != nil || len(open)+len(told) != 0 {
			t.Errorf("left are the operations %+v and the pauses %+v", open, told)
		}
	})
}

// TestPause_NoProbe: an open breaker sends no probe to a destination that is paused.
func TestPause_NoProbe(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome { return relay.Retry("http_5xx", "503") }}
		w.insert(100, "order_paid")
		w.start(w.config("a", sink))
		time.Sleep(10 * time.Second)
		w.order(relay.OpPause, `{"destination":"dest","indefinitely":true}`)
		time.Sleep(time.Second)
		before := sink.all()
		time.Sleep(2 * time.Minute)
		if n := sink.all() - before; n > 0 {
			t.Errorf("%d probes of a paused destination", n)
		}
	})
}
