package relay

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	logEvery    = 10 * time.Second // at most one line for an error that repeats
	minCall     = 2 * time.Second  // a call to the database is given half a lease, within these
	maxCall     = 15 * time.Second
	firstRepeat = 50 * time.Millisecond // of a call that must succeed
	lastRepeat  = 2 * time.Second
)

// call makes one call to the database, with a deadline, and logs its error; the caller decides whether to try again. It is
// not made where the outbox belongs to another instance, unless it is free.
func (r *Relay) call(ctx context.Context, name string, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, min(max(r.cfg.Lease/2, minCall), maxCall))
	defer cancel()
	if !free(name) {
		if err := r.belongs(ctx); err != nil {
			return err
		}
	}
	err := fn(ctx)
	if err == nil {
		r.seen.Store(time.Now().UnixNano())
		r.faults.clear(name)
		return nil
	}
	r.owner.doubt()
	if r.working.Err() == nil || ctx.Err() == nil {
		r.faults.log(r.log, name, err)
	}
	return err
}

// persist makes a call again until it succeeds. It returns an error only when ctx ends.
func (r *Relay) persist(ctx context.Context, name string, fn func(context.Context) error) error {
	for wait := firstRepeat; ; wait = min(2*wait, lastRepeat) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if r.call(ctx, name, fn) == nil {
			return nil
		}
		sleep(ctx, wait+rand.N(wait))
	}
}

// faults keeps an error that repeats from filling the log: a line at first, and then one each logEvery.
type faults struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (f *faults) log(log *slog.Logger, name string, err error) {
	if f.due(name) {
		log.Error("database fault", "query", name, "err", err)
	}
}

// due tells whether a fault of that name is to be logged now, and takes it that it is.
func (f *faults) due(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	due := now.Sub(f.last[name]) >= logEvery
	if due {
		f.last[name] = now
	}
	return due
}

// clear forgets a fault that is over for long enough, so that the next one is logged at once.
func (f *faults) clear(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at, ok := f.last[name]; ok && time.Since(at) >= logEvery {
		delete(f.last, name)
	}
}

// ticks tell when each loop last went round.
type ticks struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (t *ticks) mark(loop string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at[loop] = time.Now()
}

// sleep waits; it returns false as soon as ctx ends.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// instant is a moment that many goroutines may set.
type instant struct{ atomic.Int64 }

func (i *instant) time() time.Time {
	if ns := i.Load(); ns != 0 {
		return time.Unix(0, ns)
	}
	return time.Time{}
}
