package relay

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

const (
	writeOut  = 2 * time.Second // at a stop, for outcomes to be written once nothing is under way
	leaveTime = time.Second     // at a stop, for the last words to the database, and for each Sink to close
)

// Relay walks messages through their life. Its loops share little: the leases, the destinations and the queue of
// settlements.
type Relay struct {
	cfg          Config // as New was given it; what Reload changes is in routing and destinations
	log          *slog.Logger
	routing      atomic.Pointer[routing]
	destinations []*destination
	known        known
	pauses       pauses
	owner        owner
	seat         seat
	leases       *leases
	settler      *settler

	working context.Context // ends at a stop: nothing is claimed or started after that
	sending context.Context // ends when running sends are cut off; what keeps leases and writes outcomes ends last, in Run

	flights sync.WaitGroup // claimed messages on their way
	movers  sync.WaitGroup // leases being reclaimed
	lapsed  atomic.Int64   // messages that lapsed before and are open here
	wake    chan struct{}  // a destination has room again
	idle    atomic.Bool    // no operation is left for this relay to work at

	telling telling // figures of the whole table

	seen   instant // when the database last answered
	faults faults
	ticks  ticks
}

// New checks cfg, fills in the defaults, and makes a Relay. The error names what is wrong.
func New(cfg Config) (*Relay, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	r := &Relay{cfg: cfg, log: cfg.Log, leases: newLeases(cfg.Lease), wake: make(chan struct{}, 1)}
	r.routing.Store(&routing{cfg.Routes, cfg.ConfigHash})
	r.known.seen, r.faults.last, r.ticks.at = map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	r.seat.wanted = cfg.MaxActive > 0
	r.owner.asking = make(chan struct{}, 1)
	r.settler = newSettler(r)
	for _, d := range cfg.Destinations {
		r.destinations = append(r.destinations, newDestination(d, cfg.Log, r.wakeUp))
	}
	return r, nil
}

// Run works until ctx ends, or with Once until nothing that it may claim is due or in flight, and then stops in order:
// nothing more is claimed, what was not started is released, what is under way may end within StopTimeout and is cut off
// after it, and all outcomes are written. It is called once.
func (r *Relay) Run(ctx context.Context) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	sending, cutOff := context.WithCancelCause(context.WithoutCancel(ctx))
	r.working, r.sending = working, sending

	context.AfterFunc(working, func() {
		if sleep(sending, r.cfg.StopTimeout) {
			cutOff(errStopped)
		}
	})

	keeping, endKeeping := context.WithCancel(context.WithoutCancel(ctx))
	var keepers, writers sync.WaitGroup
	for _, loop := range []func(context.Context){r.renew, r.finish, r.beat, r.sit} {
		keepers.Go(func() { loop(keeping) })
	}
	for range settleWriters {
		writers.Go(func() { r.settler.run(keeping) })
	}
	var workers sync.WaitGroup
	for _, loop := range []func(context.Context){r.reclaim, r.orphans, r.discover, r.steer, r.operate, r.retain, r.figures} {
		workers.Go(func() { loop(working) })
	}
	(&claimer{Relay: r, asked: map[turn]string{}}).run(working) // until the stop, or with Once until nothing is left

	r.log.Info("stopping", "relay", r.cfg.Name, "grace", r.cfg.StopTimeout)
	stop()
	workers.Wait()
	r.movers.Wait()
	r.drain(cutOff)
	endKeeping()
	keepers.Wait()
	writers.Wait()
	r.leave(context.WithoutCancel(ctx))
}

// drain waits for what is under way, cuts off what outlasts StopTimeout, and waits until the outcomes are written.
func (r *Relay) drain(cutOff context.CancelCauseFunc) {
	r.flights.Wait()
	cutOff(nil)
	ctx, cancel := context.WithTimeout(context.Background(), writeOut)
	defer cancel()
	for r.settler.waiting.Load() > 0 && sleep(ctx, settleWait) {
	}
	if n := r.settler.waiting.Load(); n > 0 {
		r.log.Error("outcomes could not be written before the end: their messages will be sent again", "count", n)
	}
	r.finishOnce(ctx)
}

// leave says goodbye to the database and closes the destinations.
func (r *Relay) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	var closing sync.WaitGroup
	for _, d := range r.destinations {
		closing.Go(func() {
			if err := d.Sink.Close(ctx); err != nil {
				r.log.Warn("destination did not close", "destination", d.Name, "err", err)
			}
		})
	}
	_ = r.call(ctx, "leave", r.cfg.Database.Leave)
	closed := make(chan struct{})
	go func() {
		closing.Wait()
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
		r.log.Warn("a destination did not close in time and is left behind")
	}
}

// Snapshot tells how the relay is.
func (r *Relay) Snapshot() Snapshot {
	s := Snapshot{DatabaseSeen: r.seen.time(), Refused: r.owner.why(), Standby: !r.seat.ours(), Figures: r.telling.now(time.Now())}
	for _, d := range r.destinations {
		state := d.state()
		switch {
		case r.pauses.lane(d.Name, ""):
			state.State = "paused"
		case s.Standby:
			state.State, state.Limit = "standby", 0
		}
		s.Destinations = append(s.Destinations, state)
	}
	r.ticks.mu.Lock()
	defer r.ticks.mu.Unlock()
	s.Ticks = maps.Clone(r.ticks.at)
	return s
}

func (r *Relay) observe(events ...Event) {
	if r.cfg.Observe != nil {
		r.cfg.Observe(events)
	}
}

// wakeUp tells the claiming loop that a destination has room.
func (r *Relay) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}
