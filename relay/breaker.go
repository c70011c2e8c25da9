package relay

import (
	"math/rand/v2"
	"slices"
	"time"
)

const (
	breakerMessages = 3                // a run counts only when it is of at least so many messages
	maxBreakerRun   = 1000             // what a fooled breaker may come to need
	fooledWithin    = time.Minute      // opening again so soon after an early probe closed it: messages fooled it
	earlyProbes     = 3                // the probes that show a destination which was never away
	trustAgain      = 10 * time.Minute // closed for so long, a breaker forgets that it was fooled
	outageProbes    = 5                // failed in a row, they are an outage, whatever fooled it before
)

// breaker keeps a destination that is away from costing its messages their budget. It opens after a run of outcomes that
// are retry, unknown or unsent; while it is open only one probe goes out after each pause; a probe that ends done or fail
// closes it, with a width of 1 that grows with each done or fail until the destination's own width is reached.
//
// Bad messages look like an outage: 5,000 malformed ones that are answered with 500 stand in front of all good ones. So
// a breaker that an early probe closed and that soon opens again learns: it needs a run four times as long each time.
// relay/DESIGN.md, Breaker. It is not safe for concurrent use; its destination's mutex guards it.
type breaker struct {
	cfg BreakerConfig

	need     int      // outcomes in a row that open it
	failures int      // in a row so far
	ids      []string // up to breakerMessages different messages of that run
	lastErr  string

	open      bool
	openings  int // how often it opened
	pause     time.Duration
	nextProbe time.Time
	probing   bool
	failed    int  // probes in a row
	fromEnd   bool // the next probe is one of the newest messages

	closedAt time.Time
	early    bool // one of the first probes closed it
	width    int  // sends at once; 0: no limit of its own
	inFlight int
}

func newBreaker(cfg BreakerConfig) *breaker { return &breaker{cfg: cfg, need: cfg.Run} }

// room is how many more messages may be claimed, at most limit.
func (b *breaker) room(limit int) int {
	switch {
	case b.open:
		return 0
	case b.width > 0:
		return max(0, min(limit, b.width-b.inFlight))
	}
	return limit
}

// wantsProbe tells whether it is time to send one message.
func (b *breaker) wantsProbe(now time.Time) bool {
	return b.open && !b.probing && !now.Before(b.nextProbe)
}

// report counts an outcome. full is the width at which a ramp ends.
func (b *breaker) report(now time.Time, kind Kind, c Claim, text string, full int) {
	if kind == KindDone || kind == KindFail {
		b.failures, b.ids = 0, nil
		if b.width > 0 {
			if b.width++; b.width >= full {
				b.width = 0
			}
		}
		return
	}
	b.lastErr = text
	if b.open {
		return
	}
	if now.Sub(b.closedAt) >= trustAgain {
		b.need = b.cfg.Run
	}
	b.failures++
	if len(b.ids) < breakerMessages && !slices.Contains(b.ids, c.ID) {
		b.ids = append(b.ids, c.ID)
	}
	if b.failures >= b.need && len(b.ids) >= breakerMessages {
		b.trip(now)
	}
}

func (b *breaker) trip(now time.Time) {
	if b.early && now.Sub(b.closedAt) < fooledWithin {
		b.need = min(4*b.need, maxBreakerRun)
	}
	b.open, b.failed, b.early = true, 0, false
	b.openings++
	b.pause = b.cfg.Pause
	b.nextProbe = now.Add(b.pause)
}

// probed takes the outcome of a probe; "" where it came to none, as when nothing waits.
func (b *breaker) probed(now time.Time, kind Kind, text string) {
	b.probing = false
	switch kind {
	case KindDone, KindFail:
		b.open, b.failures, b.ids = false, 0, nil
		b.early = b.failed < earlyProbes
		b.closedAt, b.width = now, 1
	case "":
		b.nextProbe = now.Add(b.cfg.Pause)
	default:
		b.lastErr = text
		if b.failed++; b.failed == outageProbes {
			b.need = b.cfg.Run
		}
		b.pause = min(2*b.pause, b.cfg.Cap)
		b.nextProbe = now.Add(b.pause)
	}
}

// pickProbe chooses one at random among the least charged, so that no message pays for an outage alone.
func pickProbe(waiting []Waiting) (Waiting, bool) {
	if len(waiting) == 0 {
		return Waiting{}, false
	}
	least := slices.MinFunc(waiting, func(a, b Waiting) int { return a.Attempts - b.Attempts }).Attempts
	waiting = slices.DeleteFunc(slices.Clone(waiting), func(w Waiting) bool { return w.Attempts > least })
	return waiting[rand.IntN(len(waiting))], true
}

func (b *breaker) state() string {
	switch {
	case b.open:
		return "open"
	case b.width > 0:
		return "ramp"
	}
	return "ok"
}
