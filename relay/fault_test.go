package relay_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// TestDatabaseFault: every call may fail for a while; the relay goes on by itself and repeats no send.
func TestDatabaseFault(t *testing.T) {
	for _, call := range []relaytest.Call{
		relaytest.CallClaim, relaytest.CallLoad, relaytest.CallSettle, relaytest.CallFinish, relaytest.CallWaiting,
		relaytest.CallRoutingKeys, relaytest.CallWatch,
	} {
		t.Run(string(call), func(t *testing.T) {
			inWorld(t, func(w *world) {
				sink := &recorder{}
				cfg := w.config("a", sink)
				db := newCrashable(cfg.Database)
				cfg.Database = db
				w.start(cfg)
				w.untilAll(5*time.Second, w.insert(50, "x"), relay.Finished)
				db.set(func(c relaytest.Call) error {
					if c == call {
						return errors.New("connection refused")
					}
					return nil
				})
				ids := w.insert(50, "x")
				time.Sleep(time.Second)
				db.set(nil)
				w.untilAll(10*time.Second, ids, relay.Finished)
				synctest.Wait()
				for _, id := range ids {
					if n := sink.of(id); n != 1 {
						t.Fatalf("sent %d times", n)
					}
				}
			})
		})
	}
}

// TestDatabaseAway: the database is away for two leases and back. Nothing that a living relay holds is reclaimed, and what
// was acknowledged meanwhile is written, not sent again.
func TestDatabaseAway(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome {
			time.Sleep(700 * time.Millisecond)
			return relay.Done("")
		}}
		var dbs []*crashable
		for _, name := range []string{"a", "b"} {
			cfg := w.config(name, sink)
			db := newCrashable(cfg.Database)
			cfg.Database = db
			dbs = append(dbs, db)
			w.start(cfg)
		}
		ids := w.insert(100, "x")
		time.Sleep(time.Second)
		for _, db := range dbs {
			db.set(func(relaytest.Call) error { return errors.New("connection refused") })
		}
		time.Sleep(2 * testLease)
		for _, db := range dbs {
			db.set(nil)
		}
		w.untilAll(time.Minute, ids, relay.Finished)
		for _, id := range ids {
			if sink.of(id) != 1 || len(w.table.Attempts(id)) > 0 {
				t.Errorf("%d sends, %+v", sink.of(id), w.table.Attempts(id))
			}
		}
	})
}

// TestWaitingFails: looks for lapsed messages that fail, and fail slowly, keep no fresh message waiting.
func TestWaitingFails(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config("a", &recorder{})
		cfg.Routes[0].Match = "x" // so that there is something to look for from the start
		var looks atomic.Int64
		faulty(&cfg, func(_ context.Context, call relaytest.Call) error {
			if call != relaytest.CallWaiting {
				return nil
			}
			looks.Add(1)
			time.Sleep(500 * time.Millisecond)
			return errors.New("statement timeout")
		})
		w.start(cfg)
		time.Sleep(time.Minute)
		w.untilAll(5*time.Second, w.insert(10, "x"), relay.Finished)
		if n := looks.Load(); n > 10 {
			t.Errorf("%d looks of half a second within about a minute", n)
		}
	})
}

// refusing is a Database that writes no settlement of certain messages, and all others of their batches.
type refusing struct {
	relay.Database
	ids []string
}

func (d refusing) Settle(ctx context.Context, settlements []relay.Settlement) (unsettled []relay.Unsettled, err error) {
	var others []relay.Settlement
	for _, s := range settlements {
		if slices.Contains(d.ids, s.Row().ID) {
			unsettled = append(unsettled, relay.Unsettled{Settlement: s, Why: relay.Refused, Err: errors.New("a trigger says no")})
		} else {
			others = append(others, s)
		}
	}
	more, err := d.Database.Settle(ctx, others)
	return append(unsettled, more...), err
}

// TestRefusedRows: rows that a trigger refuses for ever, as many as there are writers, delay only themselves.
func TestRefusedRows(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config("a", sinkFunc(func(context.Context, *relay.Message) relay.Outcome {
			time.Sleep(50 * time.Millisecond)
			return relay.Done("")
		}))
		cfg.Destinations[0].Width = 1 // one outcome at a time: each writer gets one
		cfg.Database = refusing{cfg.Database, w.insert(2, "x")}
		w.start(cfg)
		time.Sleep(5 * time.Second)
		w.untilAll(5*time.Second, w.insert(10, "x"), relay.Finished)
	})
}

// unreadable is a Database that cannot read one message, nor any that is asked for together with it.
type unreadable struct {
	relay.Database
	id string
}

func (d unreadable) Load(ctx context.Context, claims []relay.Claim) ([]relay.Message, error) {
	if slices.ContainsFunc(claims, func(c relay.Claim) bool { return c.ID == d.id }) {
		return nil, errors.New("missing chunk number 0 for toast value")
	}
	return d.Database.Load(ctx, claims)
}

// TestUnreadableMessage: a message that cannot be read delays only itself; it waits, and says why.
func TestUnreadableMessage(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config("a", &recorder{})
		ids := w.insert(testWidth, "x")
		bad := ids[3]
		cfg.Database = unreadable{cfg.Database, bad}
		w.start(cfg)
		w.untilAll(5*time.Second, slices.Concat(ids[:3], ids[4:]), relay.Finished)
		w.until(5*time.Second, "the bad one waits", func() bool { return w.table.Row(bad).State == relay.Pending })
		if row := w.table.Row(bad); row.ErrorClass != "other" || row.Attempts+row.Lapses > 0 {
			t.Errorf("%+v", row)
		}
	})
}
