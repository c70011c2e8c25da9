package relay_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

func killed(relaytest.Call) error { return errors.New("killed") }

// TestNever: what may have taken effect is not sent again to a destination that remembers no key; what it answered is.
func TestNever(t *testing.T) {
	for _, c := range []struct {
		name  string
		first relay.Outcome
		state relay.State
		sends int
	}{
		{"no answer", relay.Unknown("timeout", "no answer"), relay.Failed, 1},
		{"not now", relay.Retry("http_5xx", "503"), relay.Finished, 2},
		{"nothing went out", relay.Unsent("refused", "refused"), relay.Finished, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var once sync.Once
				sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome {
					o := relay.Done("")
					once.Do(func() { o = c.first })
					return o
				}}
				cfg := w.config("a", sink)
				cfg.Destinations[0].Dedupe.Never = true
				ids := w.insert(1, "x")
				w.start(cfg)
				limit := time.Minute
				if c.state == relay.Failed {
					limit = 500 * time.Millisecond // nothing is waited for
				}
				w.untilAll(limit, ids, c.state)
				time.Sleep(time.Hour)
				row := w.table.Row(ids[0])
				if sink.all() != c.sends || row.State != c.state || c.state == relay.Failed && (row.Reason != relay.Unknowable || row.Attempts != 1 || row.UnknownSince.IsZero()) {
					t.Errorf("%d sends, %+v", sink.all(), row)
				}
			})
		})
	}
}

// TestNever_Crash: of what a dead relay had under way nobody knows whether it was sent, so it is not sent again.
func TestNever_Crash(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(ctx context.Context, _ *relay.Message) relay.Outcome {
			<-ctx.Done()
			return relay.Unknown("timeout", "no answer")
		}}
		never := func(name string) (relay.Config, *crashable) {
			cfg := w.config(name, sink)
			cfg.Destinations[0].Dedupe.Never = true
			db := newCrashable(cfg.Database)
			cfg.Database = db
			return cfg, db
		}
		ids := w.insert(testWidth, "x")
		cfg, db := never("a")
		w.start(cfg)
		w.until(time.Minute, "all are sent", func() bool { return sink.all() == testWidth })
		db.set(killed)
		cfg, _ = never("b")
		w.start(cfg)
		w.untilAll(time.Minute, ids, relay.Failed)
		for _, id := range ids {
			if row := w.table.Row(id); row.Reason != relay.Unknowable || sink.of(id) != 1 {
				t.Errorf("%d sends, %+v", sink.of(id), row)
			}
		}
	})
}

// TestStartBy: only what may have taken effect has to begin before its key may be forgotten.
func TestStartBy(t *testing.T) {
	inWorld(t, func(w *world) {
		const window = time.Hour
		by := map[string]time.Duration{}
		cfg := w.config("a", sinkFunc(func(_ context.Context, m *relay.Message) relay.Outcome {
			if !m.StartBy.IsZero() {
				by[m.Type] = time.Until(m.StartBy)
			}
			return relay.Done("")
		}))
		cfg.Destinations[0].Dedupe.Window = window
		cfg.Destinations[0].Width = 1 // one after the other
		ids := w.table.Insert(relaytest.Seed{Type: "fresh"}, relaytest.Seed{Type: "unknown", UnknownFor: 40 * time.Minute})
		w.start(cfg)
		w.untilAll(time.Minute, ids, relay.Finished)
		if left := by["unknown"]; len(by) != 1 || left > 20*time.Minute || left < 20*time.Minute-time.Second {
			t.Errorf("%v is left to begin, want 20 minutes for the message that may have taken effect", by)
		}
	})
}

// TestRemembersFailures: an answer that the destination would give again under the same key ends the message, charged, and
// counts for the breaker as a retry does.
func TestRemembersFailures(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome {
			return relay.Outcome{Kind: relay.KindRetry, Reason: relay.Unknowable, Class: "http_5xx", Err: "HTTP 500"}
		}}
		cfg := w.config("a", sink)
		cfg.Destinations[0].Width = 1
		w.insert(20, "x")
		w.start(cfg)
		time.Sleep(900 * time.Millisecond)
		if n := sink.all(); n != 5 {
			t.Errorf("%d sends before the breaker opened, want 5", n)
		}
		failed := 0
		for _, row := range w.table.Rows() {
			if row.State == relay.Failed && row.Reason == relay.Unknowable && row.Attempts == 1 && !row.UnknownSince.IsZero() {
				failed++
			}
		}
		if failed != 5 {
			t.Errorf("%d messages ended failed(unknown), charged once, want 5", failed)
		}
	})
}

// TestGone: a destination that wants no more messages is paused until somebody resumes it.
func TestGone(t *testing.T) {
	inWorld(t, func(w *world) {
		var gone atomic.Bool
		gone.Store(true)
		sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome {
			if gone.Load() {
				return relay.Outcome{Kind: relay.KindRetry, Class: "not_found", Err: "HTTP 410 Gone", Pause: true}
			}
			return relay.Done("")
		}}
		cfg := w.config("a", sink)
		cfg.Destinations[0].Width = 1
		ids := w.insert(20, "x")
		w.start(cfg)
		time.Sleep(time.Hour)
		if n := sink.all(); n != 1 {
			t.Errorf("%d sends to a destination that is gone", n-1)
		}
		gone.Store(false)
		w.order(relay.OpResume, `{"destination":"dest"}`)
		w.untilAll(time.Minute, ids, relay.Finished)
	})
}

// TestNewConfiguration: what no policy accepted is sent as soon as a relay starts whose configuration does.
func TestNewConfiguration(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config("a", &recorder{})
		cfg.ConfigHash = "old"
		cfg.Routes[0].Policy.Versions = []int{1}
		ids := w.table.Insert(relaytest.Seed{Type: "x", SchemaVersion: 2, Age: 100 * time.Hour})
		stop := w.start(cfg)
		w.until(time.Minute, "it is turned back", func() bool { return w.table.Row(ids[0]).ErrorClass == relay.ClassNoPolicy })
		time.Sleep(time.Minute)
		stop()
		cfg = w.config("b", &recorder{})
		cfg.ConfigHash = "new"
		w.start(cfg)
		w.untilAll(3*time.Second, ids, relay.Finished)
	})
}

// TestWindow_Late: the time for which a key is remembered begins with the send, not when its outcome could be written.
func TestWindow_Late(t *testing.T) {
	for name, late := range map[string]func(w *world, db *crashable, id string) (end func()){
		"the database is away": func(_ *world, db *crashable, _ string) func() {
			db.set(killed)
			return func() { db.set(nil) }
		},
		"the row is locked": func(w *world, _ *crashable, id string) func() { return w.table.Lock(id) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				ids := w.insert(1, "x")
				ends := make(chan func(), 1)
				cfg := w.config("a", nil)
				db := newCrashable(cfg.Database)
				var once sync.Once
				sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome {
					o := relay.Done("")
					once.Do(func() {
						ends <- late(w, db, ids[0])
						o = relay.Unknown("timeout", "no answer")
					})
					return o
				}}
				cfg.Database, cfg.Lease, cfg.Destinations[0].Sink = db, 2*time.Minute, sink
				cfg.Destinations[0].Dedupe.Window = 10 * time.Second
				w.start(cfg)
				w.until(time.Minute, "it is sent", func() bool { return sink.all() == 1 })
				time.Sleep(time.Minute)
				(<-ends)()
				w.untilAll(time.Minute, ids, relay.Failed)
				if row := w.table.Row(ids[0]); sink.all() != 1 || row.Reason != relay.Unknowable {
					t.Errorf("%d sends, %+v", sink.all(), row)
				}
			})
		})
	}
}
