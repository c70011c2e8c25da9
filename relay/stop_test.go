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

// TestS14_Stop: no more claims; what was not started is released; what ends in time is settled; what hangs is cut off as
// a lapse.
func TestS14_Stop(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(ctx context.Context, m *relay.Message) relay.Outcome {
			if m.Type == "hang" {
				<-ctx.Done()
				return relay.Unknown("timeout", "cut")
			}
			time.Sleep(3 * time.Second)
			return relay.Done("")
		}}
		slow, hang := w.insert(4, "slow"), w.insert(4, "hang")
		late := w.insert(50, "slow")
		stop := w.start(w.config("a", sink))
		w.until(time.Second, "all places taken", func() bool { return sink.all() == testWidth })
		stop()
		w.untilEnded(stopLimit)
		for _, id := range append(slow, hang...) {
			row, sent := w.table.Row(id), sink.of(id)
			switch {
			case sent == 0:
				late = append(late, id)
			case row.State == relay.Finished && row.Attempts == 1:
			case row.State == relay.Pending && row.Lapses == 1 && row.Attempts == 0 && !row.UnknownSince.IsZero():
			default:
				t.Errorf("after the stop: %d sends, %+v", sent, row)
			}
		}
		for _, id := range late {
			if row := w.table.Row(id); sink.of(id) == 0 && (row.State != relay.Pending || row.Attempts+row.Lapses > 0) {
				t.Errorf("never sent, but %+v", row)
			}
		}
		if leases := w.table.Leases(); len(leases) > 0 {
			t.Errorf("leases are left: %+v", leases)
		}
	})
}

// stopLimit is how long a stop may take: StopTimeout for running sends, and four seconds for all that is said after them.
const stopLimit = 9 * time.Second

// TestStop_SettlementsRefused: a stop ends although nothing can be written and the queue of outcomes is full, so that sends
// wait to hand theirs over.
func TestStop_SettlementsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome {
			time.Sleep(time.Second)
			return relay.Done("")
		}}
		cfg := w.config("a", sink)
		cfg.Destinations[0].Width = 7000 // more than the queue and the writers hold
		faulty(&cfg, func(_ context.Context, call relaytest.Call) error {
			if call == relaytest.CallSettle {
				return errors.New("refused")
			}
			return nil
		})
		w.insert(7000, "x")
		stop := w.start(cfg)
		w.until(time.Minute, "all are under way", func() bool { return sink.all() == 7000 })
		time.Sleep(2 * time.Second)
		stop()
		w.untilEnded(stopLimit)
	})
}

// TestStop_ClaimHangs: a claim that hangs takes nothing off the time that running sends are given, and adds none to it.
func TestStop_ClaimHangs(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config("a", sinkFunc(func(ctx context.Context, _ *relay.Message) relay.Outcome {
			<-ctx.Done()
			return relay.Unknown("timeout", "")
		}))
		cfg.Lease = 30 * time.Second // a call is given half of it
		var hang atomic.Bool
		faulty(&cfg, func(ctx context.Context, call relaytest.Call) error {
			if hang.Load() && call == relaytest.CallClaim {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		w.insert(1, "x")
		stop := w.start(cfg)
		time.Sleep(time.Second)
		hang.Store(true)
		time.Sleep(time.Second)
		stopped := time.Now()
		stop()
		w.untilEnded(stopLimit)
		if took := time.Since(stopped); took < cfg.StopTimeout || took > cfg.StopTimeout+500*time.Millisecond {
			t.Errorf("the stop took %s, sends are given %s", took, cfg.StopTimeout)
		}
	})
}

// TestStop_CloseHangs: a stop ends although a Sink does not close.
func TestStop_CloseHangs(t *testing.T) {
	inWorld(t, func(w *world) {
		forever := make(chan struct{})
		defer close(forever)
		stop := w.start(w.config("a", &relaytest.Sink{CloseFunc: func(context.Context) error { <-forever; return nil }}))
		time.Sleep(time.Second)
		stop()
		w.untilEnded(stopLimit)
	})
}

// TestStop_WhileMoving: a relay that stops while somebody locks a message that it reclaims leaves the lease row behind, so
// that the next relay finds the message by its lease and not by the slow walk.
func TestStop_WhileMoving(t *testing.T) {
	inWorld(t, func(w *world) {
		id := w.insert(1, "x")
		w.dead(7, relay.Quota{RoutingKey: "x", Limit: 1})
		defer w.table.Lock(id[0])()
		stop := w.start(w.config("a", &recorder{}))
		w.until(time.Minute, "the lease is taken", func() bool { return w.table.Leases()[0].Relay == "a" })
		time.Sleep(time.Second)
		stop()
		w.untilEnded(stopLimit)
		if row, leases := w.table.Row(id[0]), w.table.Leases(); row.LeaseID != 7 || len(leases) != 1 {
			t.Errorf("the message is under lease %d, and these lease rows are left: %+v", row.LeaseID, leases)
		}
	})
}
