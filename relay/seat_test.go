package relay_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// seats runs so many relays, of which so many may be active, at a destination that counts who sends.
type seats struct {
	*world
	*gauge
	relays []*relay.Relay
	dbs    []*crashable
	stops  []func()
}

func (w *world) seats(relays, active int, shared bool) *seats {
	s := &seats{world: w, gauge: &gauge{takes: 20 * time.Millisecond}}
	for i := range relays {
		cfg := w.sharing(fmt.Sprint("relay", i), s.gauge, 4, 50)
		cfg.Destinations[0].Shared = shared
		cfg.MaxActive = active
		s.add(cfg)
	}
	return s
}

// add starts a relay, a moment after the one before.
func (s *seats) add(cfg relay.Config) {
	db := newCrashable(cfg.Database)
	cfg.Database = db
	r, err := relay.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	stopped := make(chan struct{})
	ctx, cancel := context.WithCancel(s.ctx)
	s.run.Go(func() {
		defer close(stopped)
		r.Run(ctx)
	})
	s.relays, s.dbs, s.stops = append(s.relays, r), append(s.dbs, db), append(s.stops, func() { cancel(); <-stopped })
	time.Sleep(100 * time.Millisecond)
}

// senders are who sends within a time, and how many sends there were.
func (s *seats) senders(within time.Duration) (by map[string]int, most int) {
	s.reset()
	time.Sleep(within)
	return s.reset()
}

// TestSeats: no more relays work than may, the others stand by and say so, and the destination is shared among those that
// work.
func TestSeats(t *testing.T) {
	for _, c := range []struct {
		relays, active int
		shared         bool
	}{{1, 1, true}, {3, 1, true}, {3, 2, true}, {3, 2, false}, {2, 3, true}} {
		t.Run(fmt.Sprintf("%d of %d, shared %t", c.active, c.relays, c.shared), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.insert(1500, "x")
				s := w.seats(c.relays, c.active, c.shared)
				time.Sleep(10 * time.Second)
				by, most := s.senders(4 * time.Second)
				working := min(c.relays, c.active)
				if len(by) != working || c.shared && (most > 4 || total(by) < 180 || total(by) > 220) {
					t.Errorf("%v sends and %d at once, want %d relays, 4 at once and 200 in all", by, most, working)
				}
				standby := 0
				for i, r := range s.relays {
					told, _ := w.table.Beat(fmt.Sprint("relay", i))
					if r.Snapshot().Standby {
						standby++
					}
					if r.Snapshot().Standby != (len(told.Destinations) == 0) || r.Snapshot().Standby != (r.Snapshot().Destinations[0].State == "standby") {
						t.Errorf("%+v, and it tells others of %q", r.Snapshot(), told.Destinations)
					}
				}
				if standby != c.relays-working {
					t.Errorf("%d stand by, want %d", standby, c.relays-working)
				}
			})
		})
	}
}

func total(by map[string]int) (n int) {
	for _, sends := range by {
		n += sends
	}
	return n
}

// TestSeats_TakenOver: where an active relay leaves or dies, one that stood by works in its place, and never two at once.
func TestSeats_TakenOver(t *testing.T) {
	for name, dies := range map[string]bool{"leaves": false, "dies": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.insert(1500, "x")
				s := w.seats(2, 1, true)
				if by, _ := s.senders(2 * time.Second); len(by) != 1 || by["relay0"] == 0 {
					t.Fatalf("%v sends, want those of the first relay alone", by)
				}
				if dies {
					s.dbs[0].set(killed)
				} else {
					s.stops[0]()
				}
				w.until(2*testLease, "the other works", func() bool { return !s.relays[1].Snapshot().Standby })
				time.Sleep(10 * time.Second)
				if by, most := s.senders(2 * time.Second); len(by) != 1 || by["relay1"] < 80 || most > 4 {
					t.Errorf("%v sends, %d at once, want a hundred of the second relay", by, most)
				}
			})
		})
	}
}

// TestSeats_Told: a relay whose database did not answer says that it works no longer, and then for what it stands by.
func TestSeats_Told(t *testing.T) {
	inWorld(t, func(w *world) {
		s, log := w.seats(0, 1, true), &bytes.Buffer{}
		cfg := w.sharing("relay0", s.gauge, 4, 50)
		cfg.MaxActive, cfg.Log = 1, slog.New(slog.NewTextHandler(log, nil)) // its handler locks
		s.add(cfg)
		cfg = w.sharing("relay1", s.gauge, 4, 50)
		cfg.MaxActive = 1
		s.add(cfg)
		s.dbs[0].set(killed)
		time.Sleep(3 * testLease)
		s.dbs[0].set(nil)
		time.Sleep(testLease)
		s.stops[0]()
		told := regexp.MustCompile(`active: this relay|could not be kept|as many relays`).FindAllString(log.String(), -1)
		if want := []string{"active: this relay", "could not be kept"}; !slices.Equal(told, want) || !s.relays[0].Snapshot().Standby {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// TestSeats_CutOff: a relay that was cut off while it asked for a claim does not ask for it again once its seat is over, also
// where its lease would last.
func TestSeats_CutOff(t *testing.T) {
	inWorld(t, func(w *world) {
		w.insert(1500, "x")
		s := w.seats(0, 1, true)
		for i := range 2 {
			cfg := w.sharing(fmt.Sprint("relay", i), s.gauge, 4, 50)
			cfg.MaxActive, cfg.Lease = 1, 3*time.Minute
			s.add(cfg)
		}
		time.Sleep(5 * time.Second)
		s.dbs[0].set(killed)
		time.Sleep(time.Minute)
		if s.relays[1].Snapshot().Standby {
			t.Fatal("the other did not take the seat")
		}
		s.dbs[0].set(func(call relaytest.Call) error {
			if call == relaytest.CallClaim {
				t.Error("a claim without a seat")
			}
			return nil
		})
		time.Sleep(time.Minute)
	})
}

// TestSeats_Once: run --once does not wait for a seat.
func TestSeats_Once(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.seats(1, 1, true)
		time.Sleep(time.Second)
		cfg := w.sharing("once", s.gauge, 4, 0)
		cfg.MaxActive, cfg.Once = 1, true
		r, err := relay.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		w.run.Go(func() {
			defer close(ended)
			r.Run(w.ctx)
		})
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Error("it still waits")
		}
	})
}
