package relay

import (
	"log/slog"
	"strconv"
	"testing"
	"time"
)

// reporter counts sends of one routing key, x, at a destination.
type reporter struct {
	*destination
	now time.Time
	n   int
}

func newReporter(t *testing.T, perKey bool) *reporter {
	t.Parallel()
	cfg := Destination{Name: "dest", Width: 8, PerKey: perKey, Breaker: BreakerConfig{Run: 5, Pause: time.Second, Cap: time.Minute}}
	return &reporter{destination: newDestination(cfg, slog.New(slog.DiscardHandler), func() {}), now: time.Now()}
}

// one reports an outcome of a send of a new message, which began when the breakers had opened before times.
func (r *reporter) one(o Outcome, probe *breaker, before int) (free bool, pause time.Duration) {
	r.n++
	return r.count(r.now, Claim{ID: strconv.Itoa(r.n), RoutingKey: "x"}, o, probe, before)
}

// open reports failures until the breaker opens; each of their sends began before that, and is charged.
func (r *reporter) open(t *testing.T) {
	t.Helper()
	for range 5 {
		if free, _ := r.one(Retry("http_5xx", "503"), nil, 0); free {
			t.Fatal("a failure was free before the breaker was open")
		}
	}
	r.is(t, "open")
}

func (r *reporter) is(t *testing.T, want string) {
	t.Helper()
	if got := r.state().State; got != want {
		t.Fatalf("the destination is %s, want %s", got, want)
	}
}

// TestCount_SendsFromBeforeTheBreakerOpened: their failures are free, and no news once a probe has closed the breaker; what
// begins after that is charged and counts again.
func TestCount_SendsFromBeforeTheBreakerOpened(t *testing.T) {
	for name, perKey := range map[string]bool{"of the destination": false, "of a routing key": true} {
		t.Run(name, func(t *testing.T) {
			r := newReporter(t, perKey)
			failure := Retry("http_5xx", "503")
			r.open(t)
			if free, pause := r.one(failure, nil, 0); !free || pause != time.Second {
				t.Errorf("open: free is %t, with a pause of %s, want true and 1s", free, pause)
			}
			r.now = r.now.Add(time.Minute)
			probe, _ := r.dueProbe(r.now)
			if free, _ := r.one(Done(""), probe, 1); free {
				t.Error("a probe was not charged")
			}
			for range 20 {
				if free, _ := r.one(failure, nil, 0); !free {
					t.Fatal("closed: a failure of a send from before was charged")
				}
			}
			if r.openings("x") != 1 {
				t.Fatal("failures of sends from before opened the breaker again")
			}
			for range 5 {
				if free, _ := r.one(failure, nil, 1); free {
					t.Fatal("a failure of a send that began after the probe was free")
				}
			}
			r.is(t, "open")
		})
	}
}

// TestForget: the breaker of a routing key that is not known any more goes, and the destination is ok without it; one that
// something is in flight of stays.
func TestForget(t *testing.T) {
	r := newReporter(t, true)
	known := true
	forget := func() { r.forget(func(string) bool { return known }) }
	r.open(t)
	r.reserve("x")
	forget()
	r.is(t, "open")
	known = false
	forget()
	r.is(t, "open")
	r.free("x", true)
	forget()
	r.is(t, "ok")
	if states := r.breakerStates(); len(states) != 1 || states[0].RoutingKey != "" || states[0].State != "ok" {
		t.Errorf("%+v, want the destination's own breaker alone", states)
	}
}
