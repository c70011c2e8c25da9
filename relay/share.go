package relay

import (
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"
)

const (
	claimAhead = 200 * time.Millisecond // of a rate: what may begin within this is claimed before its time
	beginWait  = time.Second            // a message whose turn does not come by then is given back: the share has shrunk
	pauseTakes = 2 * time.Second        // until a pause that is asked for is in force everywhere
	maxHold    = 5 * time.Minute        // a destination that asks to be left alone is left alone no longer than this
)

// share is how much of a destination this relay may use. Its destination's mutex guards it.
type share struct {
	part   part
	places int       // what that is of Width
	until  time.Time // it holds no longer, since others may take the relay for dead then; zero: for ever

	pace      *rate.Limiter // of sends; nil: no limit
	ahead     time.Duration // how much of the rate may be claimed before its time
	unstarted int           // messages that are claimed and do not wait for their turn yet

	heldUntil time.Time // the destination asked to be left alone
	asked     string    // in words
}

// newShare is all of the destination, or none of it as long as nobody knows how many relays share it.
func newShare(d Destination) share {
	s := share{pace: newPace(d.Rate)}
	if !d.Shared {
		s.part = whole
	}
	s.measure(d)
	return s
}

func newPace(perSecond float64) *rate.Limiter {
	if perSecond <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(perSecond), 1)
}

// measure says what the part comes to at the destination's limits.
func (s *share) measure(d Destination) {
	s.places, s.ahead = s.part.places(d.Width), claimAhead
	if d.Dedupe.Never { // a crash would end what only waits for its turn
		s.ahead = 0
	}
	if s.pace != nil {
		s.pace.SetLimit(rate.Limit(d.Rate * s.part.rate(d.Width)))
	}
}

// take sets the relay's share, which holds until then, and tells whether it changed.
func (d *destination) take(p part, until time.Time) (changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.share.places
	d.share.part, d.share.until = p, until
	d.share.measure(d.Destination)
	return d.share.places != was
}

// limit is how many sends may be under way at once.
func (s *share) limit(now time.Time) int {
	if !s.until.IsZero() && now.After(s.until) {
		return 0
	}
	return s.places
}

func (s *share) held(now time.Time) bool { return now.Before(s.heldUntil) }

// room is how many more messages may be claimed now, where so many are in flight.
func (s *share) room(now time.Time, inFlight int) int {
	if s.held(now) {
		return 0
	}
	n := s.limit(now) - inFlight
	if s.pace != nil {
		n = min(n, s.turns(now))
	}
	return max(n, 0)
}

// turns is how many messages may be claimed by the rate: those that can begin soon, but not one by one as their turns come.
func (s *share) turns(now time.Time) int {
	ahead := s.ahead.Seconds() * float64(s.pace.Limit())
	n := int(s.pace.TokensAt(now)+ahead) - s.unstarted
	if n < int(ahead/2) {
		return 0
	}
	return n
}

// begin waits until the rate allows a send. It gives an error where ctx ends before that, where the turn is too far away,
// and where by then the destination or the relay allows none.
func (d *destination) begin(ctx context.Context, may func() bool) error {
	d.await(-1)
	err := d.awaitTurn(ctx)
	if err == nil && (!may() || !d.open(time.Now())) {
		err = errNotNow
	}
	if err != nil {
		d.await(1)
	}
	return err
}

// errNotNow says that a message which was claimed may not be sent any more.
var errNotNow = errors.New("not now")

// awaitTurn waits for the turn that the rate gives.
func (d *destination) awaitTurn(ctx context.Context) error {
	d.mu.Lock()
	pace := d.share.pace
	d.mu.Unlock()
	if pace == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, beginWait)
	defer cancel()
	return pace.Wait(ctx)
}

// open tells that this relay has a share of the destination, which does not ask to be left alone.
func (d *destination) open(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.share.limit(now) > 0 && !d.share.held(now)
}

// await counts messages that do not wait for their turn yet.
func (d *destination) await(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.share.unstarted += n
}

// leaveAlone claims nothing for the destination for as long as it asked. The mutex is held.
func (d *destination) leaveAlone(now time.Time, o Outcome) {
	asked := min(o.RetryAfter, maxHold)
	if o.Pause {
		asked = pauseTakes
	}
	until := now.Add(asked)
	if !o.Hold && !o.Pause || asked <= 0 || until.Before(d.share.heldUntil) {
		return
	}
	if !d.share.held(now) {
		d.log.Warn("destination asks to be left alone", "destination", d.Name, "for", asked, "err", clean(o.Err, maxErrorBytes))
	}
	d.share.heldUntil = until
	d.share.asked = clean(o.Err, maxResultBytes) + "; it asked to be left alone for " + asked.String()
}
