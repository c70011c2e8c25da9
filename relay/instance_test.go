package relay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// configOf is a relay of an instance.
func (w *world) configOf(name, instance string, sink relay.Sink) relay.Config {
	cfg := w.config(name, sink)
	cfg.Database, cfg.Instance = w.table.StoreOf(name, instance), instance
	return cfg
}

// TestInstance_Foreign: beside an outbox of another instance a relay sends nothing, moves nothing, applies nothing and says
// so, whether it has another name or none; until somebody says that it is the one.
func TestInstance_Foreign(t *testing.T) {
	for _, own := range []string{"", "shop-staging"} {
		t.Run("of "+own, func(t *testing.T) {
			inWorld(t, func(w *world) {
				sink := &recorder{}
				w.table.SetInstance("shop-production")
				ids := append(w.insert(3, "order_sent"), w.insert(7, "order_paid")...)
				claims, err := w.table.StoreOf("dead", "shop-production").Claim(w.ctx, 7, 30*time.Second, []relay.Quota{{RoutingKey: "order_sent", Limit: 2}})
				if err != nil || len(claims) != 2 {
					t.Fatal(claims, err)
				}
				orphaned, err := w.table.StoreOf("dead", "shop-production").Claim(w.ctx, 8, time.Hour, []relay.Quota{{RoutingKey: "order_sent", Limit: 1}})
				if err != nil || len(orphaned) != 1 {
					t.Fatal(orphaned, err)
				}
				w.table.DropLease(8)
				asked := w.order(relay.OpCancel, `{"type":"order_paid"}`)
				cfg := w.configOf("a", own, sink)
				r, err := relay.New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				w.run.Go(func() { r.Run(w.ctx) })
				time.Sleep(10 * time.Minute)
				if sink.all() > 0 || !w.all(ids[3:], relay.Pending) || !w.all(ids[:3], relay.InFlight) {
					t.Errorf("%d sends", sink.all())
				}
				if w.table.Operation(asked).Applied {
					t.Error("an operation was applied")
				}
				if s := r.Snapshot(); !strings.Contains(s.Refused, "shop-production") {
					t.Errorf("the relay says %q", s.Refused)
				}
				if beat, ok := w.table.Beat("a"); !ok || beat.Instance != own || len(beat.Destinations) > 0 {
					t.Errorf("the relay tells of itself %+v", beat)
				}
				w.table.SetInstance(own)
				w.applied(3*time.Second, asked)
				w.untilAll(time.Minute, ids[3:], relay.Failed) // cancelled
				w.untilAll(2*time.Minute, ids[:3], relay.Finished)
				if s := r.Snapshot(); s.Refused != "" {
					t.Errorf("the relay says %q", s.Refused)
				}
			})
		})
	}
}

// TestInstance_Own: the first relay that names an instance gives the outbox to it, and those of that name work.
func TestInstance_Own(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{}
		for _, name := range []string{"a", "b"} {
			w.start(w.configOf(name, "shop", sink))
		}
		w.untilAll(3*time.Second, w.insert(10, "order_paid"), relay.Finished)
		if of, _ := w.table.Store("c").Instance(w.ctx); of != "shop" {
			t.Errorf("the outbox belongs to %q", of)
		}
	})
}

// TestInstance_RestoredBeneath: the database that answers after a fault may be another one. Nothing is claimed of it before
// it said whose it is, and nothing is sent but what was claimed before.
func TestInstance_RestoredBeneath(t *testing.T) {
	for n := range 5 { // at different moments between two looks
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inWorld(t, func(w *world) { restoredBeneath(w, time.Duration(n)*200*time.Millisecond) })
		})
	}
}

func restoredBeneath(w *world, after time.Duration) {
	sink := &recorder{}
	cfg := w.configOf("a", "shop", sink)
	db := newCrashable(cfg.Database)
	cfg.Database = db
	w.start(cfg)
	w.untilAll(3*time.Second, w.insert(10, "order_paid"), relay.Finished)
	time.Sleep(after)
	db.set(func(relaytest.Call) error { return errors.New("connection refused") })
	time.Sleep(300 * time.Millisecond)
	w.table.SetInstance("other")
	ids := w.insert(10, "order_paid")
	before := sink.all()
	asked := false
	db.set(func(call relaytest.Call) error {
		asked = asked || call == relaytest.CallInstance
		if call == relaytest.CallClaim {
			w.t.Errorf("a claim, although the outbox is another's; asked: %v", asked)
		}
		return nil
	})
	time.Sleep(time.Minute)
	if sink.all() > before || !w.all(ids, relay.Pending) || !asked {
		w.t.Errorf("%d sends, asked: %v", sink.all()-before, asked)
	}
}

// TestInstance_MovedAway: a running relay stops within a second or so of being told that the outbox is another's.
func TestInstance_MovedAway(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{}
		w.start(w.configOf("a", "shop", sink))
		w.untilAll(3*time.Second, w.insert(10, "order_paid"), relay.Finished)
		w.table.SetInstance("other")
		time.Sleep(1500 * time.Millisecond)
		ids := w.insert(10, "order_paid")
		time.Sleep(time.Minute)
		if !w.all(ids, relay.Pending) {
			t.Error("messages of another's outbox were claimed")
		}
	})
}

// TestInstance_Once ends at once where there is nothing to wait for.
func TestInstance_Once(t *testing.T) {
	inWorld(t, func(w *world) {
		w.table.SetInstance("other")
		w.insert(1, "order_paid")
		cfg := w.config("a", &recorder{})
		cfg.Once = true
		w.start(cfg)
		w.untilEnded(10 * time.Second)
	})
}

// TestStartPaused: each start pauses everything before its first claim, and it stays so until somebody resumes it.
func TestStartPaused(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{}
		ids := w.insert(10, "order_paid")
		for _, name := range []string{"a", "b"} {
			cfg := w.config(name, sink)
			cfg.Paused = "the start of " + name
			w.start(cfg)
			time.Sleep(time.Minute)
		}
		if !w.all(ids, relay.Pending) || sink.all() > 0 {
			t.Fatalf("%d sends while everything is paused", sink.all())
		}
		if n := w.table.Operations(relay.OpPause); n != 2 {
			t.Errorf("%d pauses were asked for, want one of each start", n)
		}
		w.order(relay.OpResume, `{"everything":true}`)
		w.untilAll(3*time.Second, ids, relay.Finished)
	})
}

// TestStartPaused_Again: a relay that is opened again under the same start pauses nothing that somebody has resumed, also
// where it was paused already at first, and still waits for a pause that was never applied.
func TestStartPaused_Again(t *testing.T) {
	for name, c := range map[string]struct{ before, late bool }{
		"applied": {}, "paused before": {before: true}, "not applied": {late: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				sink := &recorder{}
				ids := w.insert(10, "order_paid")
				if c.before {
					w.order(relay.OpPause, `{"everything":true,"indefinitely":true}`)
				}
				open := func(name string, fault func(relaytest.Call) error) (stop func()) {
					cfg := w.config(name, sink)
					cfg.Paused = "a start"
					db := newCrashable(cfg.Database)
					db.set(fault)
					cfg.Database = db
					stop = w.start(cfg)
					time.Sleep(time.Minute)
					return stop
				}
				var fault func(relaytest.Call) error
				if c.late {
					fault = func(call relaytest.Call) error {
						if call == relaytest.CallOperate {
							return errors.New("no right")
						}
						return nil
					}
				}
				open("first", fault)()
				if c.late {
					open("second", fault)()
					open("third", nil)()
				}
				if sink.all() > 0 {
					t.Fatalf("%d sends while everything is paused, or has to be", sink.all())
				}
				asked := w.table.Operations(relay.OpPause)
				w.order(relay.OpResume, `{"everything":true}`)
				open("again", nil)
				if n := w.table.Operations(relay.OpPause); n != asked || !w.all(ids, relay.Finished) {
					t.Errorf("%d pauses more, and %d sends", n-asked, sink.all())
				}
			})
		})
	}
}

// TestInstance_SomeConnections: where only some of a relay's connections lead to a copy, its claims there are refused, and
// those of the others send everything.
func TestInstance_SomeConnections(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.configOf("a", "shop", &recorder{})
		claims := 0
		faulty(&cfg, func(_ context.Context, call relaytest.Call) error {
			if call != relaytest.CallClaim {
				return nil
			}
			if claims++; claims%2 == 1 {
				return relay.ErrForeign
			}
			return nil
		})
		w.start(cfg)
		w.untilAll(10*time.Second, w.insert(10, "order_paid"), relay.Finished)
	})
}
