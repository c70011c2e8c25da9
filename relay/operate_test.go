package relay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// rejecting is a destination that takes nothing until told is closed.
func rejecting(told <-chan struct{}) *recorder {
	return &recorder{answer: func(context.Context, *relay.Message) relay.Outcome {
		select {
		case <-told:
			return relay.Done("")
		default:
			return relay.Fail(relay.Rejected, "http_4xx", "422")
		}
	}}
}

// TestOperate_KilledApplier: two operators replay the same messages, and the relay that applies it is killed in the middle.
// Another goes on where it was, and each message has one life more.
func TestOperate_KilledApplier(t *testing.T) {
	inWorld(t, func(w *world) {
		told := make(chan struct{})
		sink := rejecting(told)
		db := newCrashable(w.table.Store("a"))
		cfg := w.config("a", sink)
		cfg.Database = db
		ids := w.insert(2000, "order_paid")
		w.start(cfg)
		w.untilAll(time.Minute, ids, relay.Failed)
		close(told)
		steps := 0
		db.set(func(call relaytest.Call) error { // after the third step
			if steps += btoi(call == relaytest.CallOperate); steps > 3 {
				return errors.New("killed")
			}
			return nil
		})
		first, second := w.order(relay.OpReplay, `{"state":"failed"}`), w.order(relay.OpReplay, `{"reason":"rejected","rate":200}`)
		time.Sleep(10 * time.Second)
		done := w.table.Operation(first)
		if done.Applied || done.Applier != "a" || done.Progress == "" {
			t.Fatalf("the operation is %+v, want it half done", done)
		}
		w.start(w.config("b", sink))
		a, b := w.applied(time.Minute, first), w.applied(time.Minute, second)
		if a.Affected+b.Affected != len(ids) {
			t.Errorf("%d and %d messages were changed, want %d in all", a.Affected, b.Affected, len(ids))
		}
		w.untilAll(time.Minute, ids, relay.Finished)
		for _, id := range ids {
			if row := w.table.Row(id); row.Replays != 1 || row.Attempts != 1 || row.SendID == "" {
				t.Fatalf("a message is %+v", row)
			}
		}
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestOperate_SlowOneHoldsUpNothing: a replay at one message in ten seconds, and a cancel that is there at once.
func TestOperate_SlowOneHoldsUpNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		told := make(chan struct{})
		ids := w.insert(5, "order_paid")
		later := w.table.Insert(relaytest.Seed{Type: "later", Delay: time.Hour})
		w.start(w.config("a", rejecting(told)))
		w.untilAll(time.Minute, ids, relay.Failed)
		close(told)
		slow := w.order(relay.OpReplay, `{"state":"failed","rate":0.1}`)
		time.Sleep(15 * time.Second)
		fast := w.order(relay.OpCancel, `{"type":"later"}`)
		w.applied(2*time.Second, fast)
		if row := w.table.Row(later[0]); row.Reason != relay.Cancelled {
			t.Errorf("the message is %+v", row)
		}
		if n := w.table.Operation(slow).Affected; n != 2 {
			t.Errorf("after 17 s %d messages were replayed, want 2", n)
		}
		w.applied(time.Minute, slow)
	})
}

// TestOperate_Window: past the time for which a destination remembers a wire key, a replay under it wants force.
func TestOperate_Window(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config("a", &recorder{answer: func(context.Context, *relay.Message) relay.Outcome { return relay.Unknown("timeout", "no answer") }})
		cfg.Destinations[0].Dedupe.Window = 10 * time.Minute
		cfg.Routes[0].Policy.Budget = 1
		ids := w.insert(1, "order_paid")
		w.start(cfg)
		w.untilAll(time.Minute, ids, relay.Failed)
		if row := w.applied(time.Minute, w.order(relay.OpReplay, `{"state":"failed"}`)); row.Affected != 1 {
			t.Errorf("within the window: %+v", row)
		}
		w.untilAll(time.Minute, ids, relay.Failed)
		time.Sleep(10 * time.Minute)
		if row := w.applied(time.Minute, w.order(relay.OpReplay, `{"state":"failed"}`)); row.Affected != 0 || row.Detail.Skipped[relay.SkipUnknown] != 1 {
			t.Errorf("past the window: %+v", row)
		}
		if row := w.applied(time.Minute, w.order(relay.OpReplay, `{"state":"failed","force":true}`)); row.Affected != 1 {
			t.Errorf("by force: %+v", row)
		}
	})
}

// TestOperate_Faults: a step that fails is made again, smaller each time, and the operation ends.
func TestOperate_Faults(t *testing.T) {
	inWorld(t, func(w *world) {
		var sizes []string
		cfg := w.config("a", &recorder{})
		inner := cfg.Database
		cfg.Database = operating{inner, func(most int) error {
			if sizes = append(sizes, fmt.Sprint(most)); most > 100 {
				return errors.New("too slow")
			}
			return nil
		}}
		w.table.Insert(relaytest.Seed{Type: "later", Delay: time.Hour})
		id := w.order(relay.OpCancel, `{"type":"later"}`)
		w.start(cfg)
		w.applied(time.Minute, id)
		if got := fmt.Sprint(sizes); got != "[500 250 125 62]" {
			t.Errorf("the steps were of %s messages", got)
		}
	})
}

// operating is a Database whose steps of operations may fail.
type operating struct {
	relay.Database
	fault func(most int) error
}

func (o operating) Operate(ctx context.Context, op relay.Operation, judge func(relay.Candidate) relay.Verdict, most int) (relay.Step, error) {
	if err := o.fault(most); err != nil {
		return relay.Step{}, err
	}
	return o.Database.Operate(ctx, op, judge, most)
}

// TestOperate_Once: a run that ends when nothing is left has applied what was asked for.
func TestOperate_Once(t *testing.T) {
	inWorld(t, func(w *world) {
		told := make(chan struct{})
		sink := rejecting(told)
		cfg := w.config("a", sink)
		cfg.Once = true
		ids := w.insert(1500, "order_paid")
		w.start(cfg)
		w.untilEnded(time.Minute)
		close(told)
		id := w.order(relay.OpReplay, `{"state":"failed"}`)
		cfg.Database = w.table.Store("b")
		w.start(cfg)
		w.untilEnded(time.Minute)
		if !w.table.Operation(id).Applied || !w.all(ids, relay.Finished) {
			t.Errorf("the operation is %+v", w.table.Operation(id))
		}
	})
}
