package relay

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

var (
	errLeaseEnds = errors.New("the lease ends")
	errLeaseLost = errors.New("the lease was lost")
	errStopped   = errors.New("the relay stops")
)

// lease is one claim while something is open under it: a message that was not settled yet.
type lease struct {
	id     LeaseID
	ctx    context.Context // ends before the lease's length is over: nothing is under way to a destination after that
	cancel context.CancelCauseFunc
	timer  *time.Timer

	until  time.Time // by our monotonic clock; guarded by leases.mu, as all below
	open   int
	finish time.Time // its row may be deleted from then on
}

// leases are the leases of this relay that something is open under, and those that wait to be finished.
type leases struct {
	length time.Duration

	mu   sync.Mutex
	live map[LeaseID]*lease
	over map[LeaseID]time.Time // nothing open any more: when the row may be deleted
}

func newLeases(length time.Duration) *leases {
	return &leases{length: length, live: map[LeaseID]*lease{}, over: map[LeaseID]time.Time{}}
}

// newLeaseID chooses a lease's id before the claim is asked for.
func newLeaseID() LeaseID { return LeaseID(rand.Int64N(1<<63-2) + 1) }

// margin is how long before its end a lease is treated as over, so that what is under way can be cut off in time.
func (ls *leases) margin() time.Duration { return ls.length / 10 }

// add starts a lease of n messages that was first asked for at the time asked, by our monotonic clock. One that was asked
// for again keeps its row for its whole length, because an earlier asking may still be on its way to the database.
func (ls *leases) add(parent context.Context, id LeaseID, asked time.Time, again bool, n int) *lease {
	l := &lease{id: id, open: n, until: asked.Add(ls.length - ls.margin()), finish: asked}
	if again {
		l.finish = asked.Add(ls.length)
	}
	l.ctx, l.cancel = context.WithCancelCause(parent)
	l.timer = time.AfterFunc(time.Until(l.until), func() { l.cancel(errLeaseEnds) })
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.live[id] = l
	return l
}

// alive tells whether a send may start under the lease. It asks the clock, because after a pause of the whole process the
// timer may not have run yet.
func (ls *leases) alive(l *lease) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return l.ctx.Err() == nil && time.Now().Before(l.until)
}

// closed says that n messages of the lease need nothing more; with the last one it is ready to be finished.
func (ls *leases) closed(l *lease, n int) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l.open -= n; l.open > 0 {
		return
	}
	l.timer.Stop()
	l.cancel(nil)
	if ls.live[l.id] == l {
		delete(ls.live, l.id)
		ls.over[l.id] = l.finish
	}
}

// leave lets go of a lease under which something is in flight still: its row is another relay's to find.
func (ls *leases) leave(l *lease) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.timer.Stop()
	l.cancel(nil)
	if ls.live[l.id] == l {
		delete(ls.live, l.id)
	}
}

// renewable are the leases to renew now.
func (ls *leases) renewable() []LeaseID {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ids := make([]LeaseID, 0, len(ls.live))
	for id := range ls.live {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// renewed moves the end of the leases that were renewed, by a renewal asked for at the time asked. Those that are lost
// are cut off; what was acknowledged under them is still offered to settle, whose guard decides.
// It returns which were lost just now; one that was finished meanwhile, or is known as lost, is not.
func (ls *leases) renewed(ids, lost []LeaseID, asked time.Time) (cut []LeaseID) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, id := range ids {
		l := ls.live[id]
		switch {
		case l == nil:
		case slices.Contains(lost, id):
			if !l.until.IsZero() {
				cut = append(cut, id)
			}
			l.until = time.Time{}
			l.cancel(errLeaseLost)
		case l.ctx.Err() == nil:
			l.until = asked.Add(ls.length - ls.margin())
			l.timer.Reset(time.Until(l.until))
		}
	}
	return cut
}

// busy tells whether anything is open.
func (ls *leases) busy() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return len(ls.live) > 0
}

// mine tells whether this relay renews the lease, or is about to delete its row.
func (ls *leases) mine(id LeaseID) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	_, over := ls.over[id]
	return ls.live[id] != nil || over
}

// finished are up to limit leases whose rows may be deleted.
func (ls *leases) finished(limit int) []LeaseID {
	now := time.Now()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var ids []LeaseID
	for id, from := range ls.over {
		if len(ids) < limit && !now.Before(from) {
			ids = append(ids, id)
		}
	}
	return ids
}

// forget drops leases whose rows were deleted.
func (ls *leases) forget(ids []LeaseID) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, id := range ids {
		delete(ls.over, id)
	}
}
