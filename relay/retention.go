package relay

import (
	"cmp"
	"context"
	"math"
	"time"
)

// Retention says how long what is over is kept, by the database's clock; zero values are the defaults of relay/DESIGN.md,
// Retention. A failed message that nobody resolved is kept in any case.
type Retention struct {
	Done       time.Duration // messages, after they were done
	Resolved   time.Duration // failed messages, after they were resolved
	Attempts   time.Duration // rows of outbox_attempt, after the end of the send
	Operations time.Duration // applied operations and their corrections, after they were applied
}

// Forever keeps what is over.
const Forever time.Duration = math.MaxInt64

// The defaults of Retention.
const (
	DefaultKeepDone       = 7 * 24 * time.Hour
	DefaultKeepResolved   = 90 * 24 * time.Hour
	DefaultKeepAttempts   = 30 * 24 * time.Hour
	DefaultKeepOperations = 365 * 24 * time.Hour
)

// DefaultRetention is that of relay/DESIGN.md, Retention.
func DefaultRetention() Retention {
	return Retention{DefaultKeepDone, DefaultKeepResolved, DefaultKeepAttempts, DefaultKeepOperations}
}

// Or fills in what is zero.
func (k Retention) Or(other Retention) Retention {
	return Retention{
		cmp.Or(k.Done, other.Done), cmp.Or(k.Resolved, other.Resolved), cmp.Or(k.Attempts, other.Attempts), cmp.Or(k.Operations, other.Operations),
	}
}

// Kept names what goes after its time.
type Kept string

// All that goes, in the order in which it does.
const (
	KeptMessages   Kept = "messages"
	KeptAttempts   Kept = "attempts"
	KeptOperations Kept = "operations"
)

// What removes what is old, beside the daily work.
const (
	retentionDuty = "retention" // of the one relay that does it
	removeMost    = 1000        // rows a page
	removeLeast   = 50          // the same where the database is slow
	removeSlow    = 250 * time.Millisecond
	removeRest    = 10 * time.Millisecond // the shortest, between pages
	walkRest      = time.Minute           // the same between walks
)

// walk goes through what may be old, page by page and from its old end on. It remembers its place, so that rows that stay,
// and lie in front of those that go, are looked at once in a walk.
type walk struct {
	*Relay
	what  Kept // where it is
	after string
	next  time.Time // when the next page has its turn

	most int           // rows of the next page
	took time.Duration // all pages of this walk
	gone map[Kept]int
}

// retain removes what is old, while this relay has the duty to do it.
func (r *Relay) retain(ctx context.Context) {
	d := r.newDuty(retentionDuty, "")
	w := &walk{Relay: r, what: KeptMessages, most: removeMost, gone: map[Kept]int{}}
	var kept time.Time
	for wait := time.Duration(0); sleep(ctx, wait); {
		r.ticks.mark("retain")
		if every := d.length() / 6; time.Since(kept) >= every {
			kept = time.Now()
			d.keep(ctx)
		}
		wait = max(d.length()/6-time.Since(kept), removeRest)
		if d.ours() {
			w.step(ctx)
			wait = min(wait, max(time.Until(w.next), removeRest))
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	d.leave(ctx)
}

// step looks at one page, if it has its turn. After it the walk rests as long as it took, ten times as long where the
// database is slow, and a minute after a fault. While outcomes wait to be written it stands still.
func (w *walk) step(ctx context.Context) {
	began := time.Now()
	if began.Before(w.next) {
		return
	}
	if w.settler.congested() {
		w.next = began.Add(removeSlow)
		return
	}
	var removed Removed
	err := w.call(ctx, "remove", func(ctx context.Context) (err error) {
		removed, err = w.cfg.Database.Remove(ctx, Removal{What: w.what, Keep: w.cfg.Retention, After: w.after, Most: w.most})
		return err
	})
	now := time.Now()
	took := now.Sub(began)
	switch {
	case err != nil:
		w.most, w.next = removeLeast, now.Add(walkRest)
		return
	case took > removeSlow:
		w.most, w.next = max(w.most/2, removeLeast), now.Add(10*took)
	default:
		w.most, w.next = min(2*w.most, removeMost), now.Add(max(took, removeRest))
	}
	w.took += took
	w.gone[w.what] += removed.Gone
	if w.after = removed.Next; w.after == "" {
		w.turn(now)
	}
}

// turn goes on to what comes next. After the last of it the walk rests so long that looking in vain takes a twentieth of
// the time at most.
func (w *walk) turn(now time.Time) {
	switch w.what {
	case KeptMessages:
		w.what = KeptAttempts
	case KeptAttempts:
		w.what = KeptOperations
	case KeptOperations:
		w.what = KeptMessages
		if n := w.gone; n[KeptMessages]+n[KeptAttempts]+n[KeptOperations] > 0 {
			w.log.Info("retention removed what is old", "messages", n[KeptMessages], "attempts", n[KeptAttempts], "operations", n[KeptOperations])
		}
		w.next = now.Add(max(walkRest, 20*w.took))
		w.took = 0
		clear(w.gone)
	}
}
