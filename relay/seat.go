package relay

import (
	"context"
	"strconv"
	"sync"
	"time"
)

// seatDuty is one of the places on the table, where Config.MaxActive says how many relays may work at once. Who has one keeps
// it; the rest stand by and watch all of them, so that one is taken as soon as who had it leaves, or is dead.
const seatDuty = "seat"

// seat is what other loops know of this relay's place. Its zero value is that of a relay which needs none.
type seat struct {
	mu     sync.Mutex
	wanted bool
	looked bool      // all seats were looked at, at least once
	until  time.Time // one is ours for so long; zero: none is
	active bool      // what was last told of it
}

// ours tells that this relay may claim.
func (s *seat) ours() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.wanted || time.Now().Before(s.until)
}

// standby tells that other relays have all seats.
func (s *seat) standby() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted && s.looked && !time.Now().Before(s.until)
}

// hold takes until when a seat is ours, and tells whether we have one, and whether that is news.
func (s *seat) hold(until time.Time) (active, news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	active = time.Now().Before(until)
	news = !s.looked || active != s.active // and not what was until now: it may have ended while nobody looked
	s.looked, s.until, s.active = true, until, active
	return active, news
}

// sit keeps one seat, where there are any. It ends when nothing of this relay is under way any more.
func (r *Relay) sit(ctx context.Context) {
	if r.cfg.MaxActive == 0 {
		return
	}
	seats := make([]*duty, r.cfg.MaxActive)
	for i := range seats {
		seats[i] = r.newDuty(seatDuty, strconv.Itoa(i+1))
	}
	var mine *duty
	for wait := time.Duration(0); sleep(ctx, wait); {
		r.ticks.mark("sit")
		mine = r.chooseSeat(ctx, mine, seats)
		wait = seats[0].length() / 6
	}
	if mine != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
		defer cancel()
		mine.leave(ctx)
	}
}

// chooseSeat keeps the seat that is ours, and looks for one where none is.
func (r *Relay) chooseSeat(ctx context.Context, mine *duty, seats []*duty) *duty {
	var until time.Time
	if mine != nil {
		if mine.keep(ctx); mine.ours() {
			until = mine.until
		} else {
			mine = nil
		}
	}
	for _, s := range seats {
		if mine != nil || r.working.Err() != nil {
			break
		}
		if s.keep(ctx); s.ours() {
			mine, until = s, s.until
		}
	}
	if active, news := r.seat.hold(until); news {
		log := r.log.With("relay", r.cfg.Name, "max_active", r.cfg.MaxActive)
		switch {
		case active:
			log.Info("active: this relay has one of the seats of relay.max_active")
		case mine == nil:
			log.Info("standing by: as many relays as relay.max_active work on the table")
		default:
			log.Warn("standing by: the seat of relay.max_active could not be kept, since the database does not answer")
		}
		r.wakeUp()
	}
	return mine
}
