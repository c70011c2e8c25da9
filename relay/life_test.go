package relay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// TestLife: from the INSERT to done, on two relays, each message sent once and no lease row left.
func TestLife(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(_ context.Context, m *relay.Message) relay.Outcome {
			time.Sleep(10 * time.Millisecond)
			return relay.Done("at " + m.ID)
		}}
		ids := append(w.insert(500, "order_paid"), w.insert(500, "order_sent")...)
		w.start(w.config("a", sink))
		w.start(w.config("b", sink))
		w.untilAll(time.Minute, ids, relay.Finished)
		for _, id := range ids {
			row := w.table.Row(id)
			if sink.of(id) != 1 || row.Attempts != 1 || row.Lapses != 0 || row.Result != "at "+id {
				t.Fatalf("%d sends, %+v", sink.of(id), row)
			}
		}
		w.until(5*time.Second, "no lease row left", func() bool { return len(w.table.Leases()) == 0 })
	})
}

// TestDiscovery: a routing key that nobody named is found while the relay runs, and one without a route is left alone.
func TestDiscovery(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config("a", &recorder{})
		cfg.Routes[0].Match = "order*"
		w.start(cfg)
		time.Sleep(10 * time.Second)
		ids, others := w.insert(10, "order_new"), w.insert(10, "parcel")
		w.untilAll(3*time.Second, ids, relay.Finished)
		time.Sleep(time.Minute)
		if !w.all(others, relay.Pending) {
			t.Error("messages without a route were claimed")
		}
	})
}

// TestS04_RefusedMessageDoesNotHinderOthers: each try ends in a settlement, and the others go on.
func TestS04_RefusedMessageDoesNotHinderOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		bad := w.insert(1, "bad")[0]
		ids := w.insert(200, "good")
		sink := &recorder{answer: func(_ context.Context, m *relay.Message) relay.Outcome {
			if m.Type == "bad" {
				return relay.Retry("http_5xx", "500")
			}
			return relay.Done("")
		}}
		w.start(w.config("a", sink))
		w.start(w.config("b", sink))
		w.untilAll(2*time.Second, ids, relay.Finished)
		w.untilAll(time.Minute, []string{bad}, relay.Failed)
		row := w.table.Row(bad)
		if row.Reason != relay.Exhausted || row.Attempts != 3 || sink.of(bad) != 3 || len(w.table.Attempts(bad)) != 3 {
			t.Errorf("%d sends, %d recorded, %+v", sink.of(bad), len(w.table.Attempts(bad)), row)
		}
	})
}

// TestS05_HungDestinationHoldsOnlyItsOwn: what hangs at one relay or destination keeps nobody else waiting.
func TestS05_HungDestinationHoldsOnlyItsOwn(t *testing.T) {
	inWorld(t, func(w *world) {
		hang := sinkFunc(func(ctx context.Context, _ *relay.Message) relay.Outcome {
			<-ctx.Done()
			return relay.Unknown("timeout", "")
		})
		good := &recorder{}
		cfg := w.config("a", hang)
		cfg.Destinations = append(cfg.Destinations, relay.Destination{Name: "other", Sink: good, Width: testWidth})
		cfg.Routes = append([]relay.Route{{Match: "good", To: "other"}}, cfg.Routes...)
		w.insert(50, "hang")
		w.start(cfg)
		for range 20 {
			ids := w.insert(5, "good")
			w.untilAll(time.Second, ids, relay.Finished)
			time.Sleep(3 * time.Second)
		}
	})
}

// TestS13_Panic: a Sink that panics costs that message its budget, as something may have gone out, and nobody else.
func TestS13_Panic(t *testing.T) {
	inWorld(t, func(w *world) {
		ids := w.insert(30, "good")
		bad := w.insert(1, "bad")[0]
		sink := &recorder{answer: func(_ context.Context, m *relay.Message) relay.Outcome {
			if m.Type == "bad" {
				panic("nil map")
			}
			return relay.Done("")
		}}
		w.start(w.config("a", sink))
		w.untilAll(time.Second, ids, relay.Finished)
		w.untilAll(time.Minute, []string{bad}, relay.Failed)
		row := w.table.Row(bad)
		if row.Reason != relay.Unknowable || row.Attempts != 3 || !strings.Contains(row.LastError, "nil map") {
			t.Errorf("%+v", row)
		}
		w.untilAll(time.Second, w.insert(30, "good"), relay.Finished)
	})
}

// TestSinkIgnoresItsDeadline: the outcome is unknown soon after the deadline, the lease is not renewed for ever, and the
// message keeps its place, so that what hangs is bounded by the width.
func TestSinkIgnoresItsDeadline(t *testing.T) {
	inWorld(t, func(w *world) {
		forever := make(chan struct{})
		defer close(forever)
		var running atomic.Int64
		sink := sinkFunc(func(context.Context, *relay.Message) relay.Outcome {
			running.Add(1)
			<-forever
			return relay.Done("")
		})
		cfg := w.config("a", sink)
		cfg.Routes[0].Policy.Timeout = time.Second
		ids := w.insert(20, "x")
		w.start(cfg)
		w.until(10*time.Second, "the first outcomes", func() bool {
			return slices.ContainsFunc(ids, func(id string) bool { return w.table.Row(id).Attempts == 1 })
		})
		time.Sleep(time.Hour)
		if n := running.Load(); n > testWidth {
			t.Errorf("%d sends hang, the width is %d", n, testWidth)
		}
		if leases := w.table.Leases(); len(leases) > 0 {
			t.Errorf("leases are still held: %+v", leases)
		}
	})
}

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
		stopped := time.Now()
		stop()
		w.run.Wait()
		if took := time.Since(stopped); took > 7*time.Second {
			t.Errorf("the stop took %s, 5 s are allowed for sends", took)
		}
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
		w.run.Wait()
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
		began := time.Now()
		w.start(cfg)
		w.run.Wait()
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// TestHeaders: an entry that is no string fails the message by name, and nothing goes out.
func TestHeaders(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{}
		id := w.table.Insert(relaytest.Seed{Type: "x", Headers: `{"tries":3}`})[0]
		w.start(w.config("a", sink))
		w.untilAll(time.Second, []string{id}, relay.Failed)
		row := w.table.Row(id)
		if row.Reason != relay.Rejected || row.LastError != `header "tries" is no string` || sink.of(id) != 0 {
			t.Errorf("%d sends, %+v", sink.of(id), row)
		}
	})
}

// TestAdmitted: what may not be sent is not, and waits or ends as design.md section 4 says.
func TestAdmitted(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{}
		cfg := w.config("a", sink)
		cfg.Routes[0].Types = map[string]relay.Policy{"order_*": {Versions: []int{1}}, "order_old": {}}
		ids := w.table.Insert(
			relaytest.Seed{Type: "x", Expires: -time.Second},
			relaytest.Seed{Type: "x", Expires: -time.Second, UnknownFor: time.Second},
			relaytest.Seed{Type: "x", Lapses: 4},
			relaytest.Seed{Type: "order_paid", SchemaVersion: 2},
			relaytest.Seed{Type: "order_old", SchemaVersion: 2},
		)
		w.start(cfg)
		time.Sleep(5 * time.Second)
		for i, want := range []struct {
			state  relay.State
			reason relay.Reason
			class  string
		}{
			{relay.Failed, relay.Expired, "expired"},
			{relay.Failed, relay.Unknowable, "expired"},
			{relay.Failed, relay.LeaseLost, "lapsed"},
			{relay.Pending, "", "no_policy"},
			{relay.Finished, "", ""},
		} {
			row := w.table.Row(ids[i])
			if row.State != want.state || row.Reason != want.reason || row.ErrorClass != want.class {
				t.Errorf("message %d: %+v, want %+v", i, row, want)
			}
		}
		if sink.all() != 1 {
			t.Errorf("%d sends, want 1", sink.all())
		}
	})
}

// TestBytes: no more bytes are held than the destination may hold, and a larger message goes alone.
func TestBytes(t *testing.T) {
	inWorld(t, func(w *world) {
		const limit = 1000
		var mu sync.Mutex
		held, most := 0, 0
		sink := sinkFunc(func(_ context.Context, m *relay.Message) relay.Outcome {
			mu.Lock()
			held += m.Bytes
			if m.Bytes > limit && held > m.Bytes {
				t.Errorf("%d bytes beside a message of %d", held-m.Bytes, m.Bytes)
			} else if m.Bytes <= limit {
				most = max(most, held)
			}
			mu.Unlock()
			time.Sleep(100 * time.Millisecond)
			mu.Lock()
			held -= m.Bytes
			mu.Unlock()
			return relay.Done("")
		})
		var seeds []relaytest.Seed
		for i := range 100 {
			size := 300
			if i%10 == 3 {
				size = 5000
			}
			seeds = append(seeds, relaytest.Seed{Type: "x", Payload: make([]byte, size)})
		}
		cfg := w.config("a", sink)
		cfg.Destinations[0].MaxBytes = limit
		ids := w.table.Insert(seeds...)
		w.start(cfg)
		w.untilAll(time.Minute, ids, relay.Finished)
		if most > limit {
			t.Errorf("%d bytes held, %d allowed", most, limit)
		}
	})
}

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

func TestNew_RefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	_, err := relay.New(relay.Config{Routes: []relay.Route{{Match: "*", To: "nowhere"}}, Lease: time.Millisecond, Destinations: []relay.Destination{{Name: "a"}, {Name: "a"}}})
	for _, want := range []string{"name is empty", "no database", "lease 1ms", `"nowhere" does not exist`, "used twice", "no sink"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}
