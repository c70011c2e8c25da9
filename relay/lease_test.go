package relay_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// TestLeaseCutsSendsOff: where renewals fail a send is cut off before another relay may reclaim its message, and that is
// a lapse: not charged, and perhaps taken effect.
func TestLeaseCutsSendsOff(t *testing.T) {
	inWorld(t, func(w *world) {
		var cut atomic.Int64
		sink := sinkFunc(func(ctx context.Context, _ *relay.Message) relay.Outcome {
			began := time.Now()
			<-ctx.Done()
			cut.Store(int64(time.Since(began)))
			return relay.Unknown("timeout", "cut off")
		})
		cfg := w.config("a", sink)
		faulty(&cfg, func(_ context.Context, call relaytest.Call) error {
			if call == relaytest.CallRenew {
				return errors.New("down")
			}
			return nil
		})
		id := w.insert(1, "x")
		w.start(cfg)
		w.until(testLease, "the message is pending again", func() bool { return w.table.Row(id[0]).Lapses == 1 })
		row := w.table.Row(id[0])
		if cut := time.Duration(cut.Load()); cut >= testLease || row.Attempts != 0 || row.UnknownSince.IsZero() || w.table.Attempts(id[0])[0].Outcome != "lapse" {
			t.Errorf("cut off after %s, %+v, %+v", cut, row, w.table.Attempts(id[0]))
		}
	})
}

// TestClaimAskedAgain: a claim that was made, but whose answer was lost, is asked for again under the same lease, and
// nothing lapses.
func TestClaimAskedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{}
		cfg := w.config("a", sink)
		var lost atomic.Int64
		cfg.Database = &relaytest.Faulty{Next: cfg.Database, AfterFunc: func(_ context.Context, call relaytest.Call) error {
			if call == relaytest.CallClaim && len(w.table.Leases()) > 0 && lost.Add(1) <= 3 {
				return errors.New("connection reset")
			}
			return nil
		}}
		ids := w.insert(100, "x")
		w.start(cfg)
		w.untilAll(5*time.Second, ids, relay.Finished)
		time.Sleep(5 * testLease)
		for _, id := range ids {
			if row := w.table.Row(id); sink.of(id) != 1 || len(w.table.Attempts(id)) != 0 {
				t.Errorf("%d sends, %+v", sink.of(id), row)
			}
		}
		if lost.Load() < 3 {
			t.Errorf("only %d answers were lost", lost.Load())
		}
	})
}

// TestLockedRow: a row that somebody locks for a minute is settled after that, and delays only itself.
func TestLockedRow(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome {
			time.Sleep(100 * time.Millisecond)
			return relay.Done("")
		}}
		locked := w.insert(1, "x")
		ids := w.insert(200, "x")
		w.start(w.config("a", sink))
		w.start(w.config("b", sink))
		w.until(time.Second, "the message is being sent", func() bool { return sink.of(locked[0]) == 1 })
		unlock := w.table.Lock(locked[0])
		w.untilAll(5*time.Second, ids, relay.Finished)
		time.Sleep(time.Minute)
		if row := w.table.Row(locked[0]); row.State != relay.InFlight {
			t.Fatalf("%+v", row)
		}
		unlock()
		w.untilAll(time.Second, locked, relay.Finished)
		if row := w.table.Row(locked[0]); sink.of(locked[0]) != 1 || row.Lapses != 0 || len(w.table.Attempts(locked[0])) > 0 {
			t.Errorf("%d sends, %+v", sink.of(locked[0]), row)
		}
	})
}

// TestRenewalHangs: one renewal that gets no answer cuts no send off, because another is in time.
func TestRenewalHangs(t *testing.T) {
	for _, lease := range []time.Duration{2 * time.Second, 3 * time.Second, 30 * time.Second} {
		t.Run(lease.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				cfg := w.config("a", sinkFunc(func(ctx context.Context, _ *relay.Message) relay.Outcome {
					if time.Sleep(3 * lease); ctx.Err() != nil {
						return relay.Unknown("timeout", "cut off")
					}
					return relay.Done("")
				}))
				cfg.Lease = lease
				cfg.Routes[0].Policy.Timeout = time.Hour
				var renewals atomic.Int64
				faulty(&cfg, func(ctx context.Context, call relaytest.Call) error {
					if call == relaytest.CallRenew && renewals.Add(1) == 1 {
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				})
				ids := w.insert(1, "x")
				w.start(cfg)
				w.untilAll(4*lease, ids, relay.Finished)
				if attempts := w.table.Attempts(ids[0]); len(attempts) > 0 {
					t.Errorf("the send was cut off: %+v", attempts)
				}
			})
		})
	}
}

// TestFinishedLeaseIsNotLost: a lease that ended in order while a slow renewal of it was under way is not called lost.
func TestFinishedLeaseIsNotLost(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config("a", sinkFunc(func(context.Context, *relay.Message) relay.Outcome {
			time.Sleep(100 * time.Millisecond)
			return relay.Done("")
		}))
		cfg.Lease = 6 * time.Second
		var log bytes.Buffer
		cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		var renewals atomic.Int64
		faulty(&cfg, func(_ context.Context, call relaytest.Call) error {
			if call == relaytest.CallRenew {
				renewals.Add(1)
				time.Sleep(1200 * time.Millisecond) // the row of a finished lease is deleted sooner
			}
			return nil
		})
		w.start(cfg)
		for range 100 { // so that something is under way whenever leases are renewed
			w.insert(1, "x")
			time.Sleep(50 * time.Millisecond)
		}
		w.stopAll()
		if renewals.Load() == 0 || strings.Contains(log.String(), "lease lost") {
			t.Errorf("%d slow renewals, and the log says:\n%s", renewals.Load(), log.String())
		}
	})
}

// TestLostLeaseIsToldOnce: a lease that is lost while an outcome under it cannot be written is called lost once, and not
// with each renewal.
func TestLostLeaseIsToldOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config("a", &recorder{})
		var log bytes.Buffer
		cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		faulty(&cfg, func(_ context.Context, call relaytest.Call) error {
			if call == relaytest.CallSettle {
				return errors.New("disk full")
			}
			return nil
		})
		w.insert(1, "x")
		w.start(cfg)
		w.until(5*time.Second, "a lease", func() bool { return len(w.table.Leases()) == 1 })
		w.table.DropLease(w.table.Leases()[0].ID)
		time.Sleep(10 * testLease)
		w.stopAll()
		if n := strings.Count(log.String(), "step=renew"); n != 1 {
			t.Errorf("told %d times, want once:\n%s", n, log.String())
		}
	})
}
