package relay_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// running starts a relay that can be reloaded.
func (w *world) running(cfg relay.Config) *relay.Relay {
	w.t.Helper()
	r, err := relay.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.run.Go(func() { r.Run(w.ctx) })
	return r
}

// reload changes the configuration of a relay that runs.
func (w *world) reload(r *relay.Relay, cfg relay.Config) {
	w.t.Helper()
	if err := r.Reload(cfg); err != nil {
		w.t.Fatal(err)
	}
}

// TestReload_Rate: another rate is in force within a second, whether it is higher, lower, or none at all any more.
func TestReload_Rate(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to float64
		shared   bool
		least    int // sends within two seconds, from a second after the reload
		most     int
	}{
		{"higher", 10, 100, true, 190, 210},
		{"lower", 100, 10, true, 18, 22},
		{"much lower", 500, 1, false, 1, 3},
		{"no limit any more", 10, 0, false, 1000, 1650},
		{"a limit where there was none", 0, 10, false, 18, 22},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				g := &gauge{takes: 10 * time.Millisecond}
				w.insert(2700, "x")
				cfg := w.sharing("a", g, 8, c.from)
				cfg.Destinations[0].Shared = c.shared
				r := w.running(cfg)
				time.Sleep(500 * time.Millisecond)
				cfg.Destinations[0].Rate = c.to
				w.reload(r, cfg)
				time.Sleep(time.Second)
				g.reset()
				time.Sleep(2 * time.Second)
				if by, _ := g.reset(); by["a"] < c.least || by["a"] > c.most {
					t.Errorf("%d sends in 2 s, want %d to %d", by["a"], c.least, c.most)
				}
			})
		})
	}
}

// TestReload_Width: what is under way goes on, and no more begins than the new width allows, shared or not.
func TestReload_Width(t *testing.T) {
	for name, shared := range map[string]bool{"shared": true, "its own": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				g := &gauge{takes: 100 * time.Millisecond}
				w.insert(1500, "x")
				cfg := w.sharing("a", g, 8, 0)
				cfg.Destinations[0].Shared = shared
				r := w.running(cfg)
				for _, width := range []int{2, 20, 1} {
					time.Sleep(time.Second)
					cfg.Destinations[0].Width = width
					w.reload(r, cfg)
					time.Sleep(time.Second)
					g.reset()
					time.Sleep(2 * time.Second)
					if _, most := g.reset(); most != width {
						t.Errorf("%d sends at once, want %d", most, width)
					}
				}
			})
		})
	}
}

// TestReload_SharedByTwo: the part of a relay is a part of the new width and rate at once.
func TestReload_SharedByTwo(t *testing.T) {
	inWorld(t, func(w *world) {
		g := &gauge{takes: 20 * time.Millisecond}
		w.insert(1600, "x")
		var relays []*relay.Relay
		for _, name := range []string{"a", "b"} {
			relays = append(relays, w.running(w.sharing(name, g, 4, 40)))
		}
		time.Sleep(20 * time.Second)
		for i, name := range []string{"a", "b"} {
			w.reload(relays[i], w.sharing(name, g, 8, 120))
		}
		time.Sleep(time.Second)
		g.reset()
		time.Sleep(5 * time.Second)
		if by, most := g.reset(); most > 8 || by["a"] < 280 || by["b"] < 280 || by["a"]+by["b"] > 620 {
			t.Errorf("%v sends in 5 s and %d at once, want 300 each and 8 at most", by, most)
		}
	})
}

// TestReload_Routes: a routing key gets a route, or another one, and loses it again; nothing is lost between.
func TestReload_Routes(t *testing.T) {
	inWorld(t, func(w *world) {
		first, second := &recorder{}, &recorder{}
		cfg := w.config("a", first)
		cfg.Destinations = append(cfg.Destinations, relay.Destination{Name: "second", Sink: second, Width: 1})
		cfg.Routes = []relay.Route{{Match: "orders", To: "dest"}}
		r := w.running(cfg)
		w.untilAll(time.Second, w.insert(10, "orders"), relay.Finished)
		added := w.insert(10, "invoices")
		time.Sleep(time.Minute)

		cfg.Routes = []relay.Route{{Match: "orders", To: "second"}, {Match: "invoices", To: "dest"}}
		w.reload(r, cfg)
		w.untilAll(time.Second, added, relay.Finished)
		w.untilAll(time.Second, w.insert(10, "orders"), relay.Finished)
		if first.all() != 20 || second.all() != 10 {
			t.Errorf("%d and %d sends, want 20 and 10", first.all(), second.all())
		}

		cfg.Routes = cfg.Routes[:1]
		w.reload(r, cfg)
		w.insert(3, "invoices")
		w.until(time.Minute, "they are counted as unrouted", func() bool { return unrouted(r) == 3 })
		if first.all() != 20 {
			t.Errorf("%d sends of what no route takes", first.all()-20)
		}
	})
}

// TestReload_Claimed: what was claimed for a destination that its route does not lead to any more goes where it leads now.
func TestReload_Claimed(t *testing.T) {
	inWorld(t, func(w *world) {
		first, second := &recorder{}, &recorder{}
		cfg := w.config("a", first)
		cfg.Destinations = append(cfg.Destinations, relay.Destination{Name: "second", Sink: second, Width: testWidth})
		loading, loaded := make(chan bool, 100), make(chan bool)
		faulty(&cfg, func(_ context.Context, call relaytest.Call) error {
			if call == relaytest.CallLoad {
				loading <- true
				<-loaded
			}
			return nil
		})
		ids := w.insert(testWidth, "x")
		r := w.running(cfg)
		<-loading
		cfg.Routes = []relay.Route{{Match: "*", To: "second"}}
		w.reload(r, cfg)
		close(loaded)
		w.untilAll(time.Second, ids, relay.Finished)
		if first.all() != 0 || second.all() != len(ids) {
			t.Errorf("%d and %d sends, want 0 and %d", first.all(), second.all(), len(ids))
		}
	})
}

// TestReload_Policy: a send ends by the policy that it began with, and the next one has the new policy.
func TestReload_Policy(t *testing.T) {
	inWorld(t, func(w *world) {
		answer := make(chan relay.Outcome)
		sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome { return <-answer }}
		cfg := w.config("a", sink)
		cfg.Routes = []relay.Route{{Match: "*", To: "dest", Policy: relay.Policy{Budget: 1, Timeout: time.Hour}}}
		ids := w.insert(1, "x")
		r := w.running(cfg)
		w.until(time.Second, "it is sent", func() bool { return sink.all() == 1 })
		cfg.Routes = []relay.Route{{Match: "*", To: "dest", Policy: relay.Policy{Budget: 2, Base: time.Second}}}
		w.reload(r, cfg)
		answer <- relay.Retry("http_5xx", "503")
		w.untilAll(time.Second, ids, relay.Failed)

		ids = w.insert(1, "x")
		for range 2 {
			answer <- relay.Retry("http_5xx", "503")
		}
		w.untilAll(time.Minute, ids, relay.Failed)
		if row := w.table.Row(ids[0]); row.Attempts != 2 || row.Reason != relay.Exhausted {
			t.Errorf("%+v", row)
		}
	})
}

// TestReload_NewConfiguration: what no policy accepted is sent as soon as a reload brings one that does, and others see by
// the beat which configuration is in force.
func TestReload_NewConfiguration(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config("a", &recorder{})
		cfg.ConfigHash = "old"
		cfg.Routes = []relay.Route{{Match: "*", To: "dest", Policy: relay.Policy{Versions: []int{1}}}}
		ids := w.table.Insert(relaytest.Seed{Type: "x", SchemaVersion: 2, Age: 100 * time.Hour})
		r := w.running(cfg)
		w.until(time.Minute, "it is turned back", func() bool { return w.table.Row(ids[0]).ErrorClass == relay.ClassNoPolicy })
		time.Sleep(time.Minute)
		cfg.ConfigHash = "new"
		cfg.Routes = []relay.Route{{Match: "*", To: "dest"}}
		w.reload(r, cfg)
		w.untilAll(3*time.Second, ids, relay.Finished)
		w.until(3*time.Second, "its beat tells", func() bool { beat, _ := w.table.Beat("a"); return beat.ConfigHash == "new" })
	})
}

// TestReload_Breaker: other settings count from the next outcome on, and an open breaker stays open.
func TestReload_Breaker(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome { return relay.Retry("http_5xx", "503") }}
		cfg := w.config("a", sink)
		cfg.Destinations[0].Width = 1
		cfg.Destinations[0].Breaker = relay.BreakerConfig{Run: 1000, Pause: time.Hour, Cap: time.Hour}
		r := w.running(cfg)
		w.insert(20, "x")
		w.until(time.Second, "each is sent once", func() bool { return sink.all() >= 20 })
		cfg.Destinations[0].Breaker = relay.BreakerConfig{Run: 5, Pause: time.Hour, Cap: time.Hour}
		w.reload(r, cfg)
		w.until(time.Minute, "open", func() bool { return r.Snapshot().Destinations[0].State == "open" })
		cfg.Destinations[0].Breaker = relay.BreakerConfig{Run: 5, Pause: time.Second, Cap: time.Second}
		w.reload(r, cfg)
		if s := r.Snapshot().Destinations[0].State; s != "open" {
			t.Errorf("%s after a reload, want open", s)
		}
	})
}

// TestReload_Refused: a configuration that cannot work, or that wants a restart, changes nothing.
func TestReload_Refused(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{}
		good := w.config("a", sink)
		r := w.running(good)
		for want, harm := range map[string]func(cfg *relay.Config){
			`destination "dest" is gone`:     func(cfg *relay.Config) { cfg.Destinations[0].Name = "other" },
			`destination "other" is new`:     func(cfg *relay.Config) { cfg.Destinations[0].Name = "other" },
			"no routes":                      func(cfg *relay.Config) { cfg.Routes = nil },
			`destination "x" does not exist`: func(cfg *relay.Config) { cfg.Routes = []relay.Route{{Match: "*", To: "x"}} },
			"a width below 1":                func(cfg *relay.Config) { cfg.Destinations[0].Width = 0 },
		} {
			cfg := w.config("a", sink)
			cfg.Routes[0].Match = "nothing"
			harm(&cfg)
			if err := r.Reload(cfg); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		w.untilAll(time.Second, w.insert(10, "x"), relay.Finished)
	})
}
