package postgres

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

const (
	pulseEvery  = 250 * time.Millisecond // at most
	sweepEvery  = 5 * time.Second        // at least
	sweepShare  = 20                     // a sweep follows no earlier than so many times its own duration
	floorMargin = 100 * time.Millisecond // below what the rule allows
	maxPulses   = 4096                   // kept while a long writing transaction holds the floor back; 17 minutes of them
)

// floors keeps for each routing key the due_at below which no message that never lapsed waits, as far as the relay can
// know. A claim that begins there does not walk the dead index entries of all messages before, which stay as long as any
// transaction of the server is older than they are: 1.2 ms in place of 10 to 15 behind 41,000 of them.
//
// The floor is the earlier of two times. The first comes from pulses, each of which asks the database for its clock t, the
// oldest transaction m that still runs, and a transaction number x of its own. What a claim after the pulse (t, m, x) could
// not see was written by transactions numbered m or later. A pulse with x <= m was numbered before all of these, so each of
// them wrote a due_at after its t. The second is the last due_at that a full quota returned: what is due after it is not
// taken yet. It presumes that a claim takes every due message that it passes.
//
// A sweep is a claim without a floor. It finds what the rule may hide: rows that another claim held and rolled back, times
// set by hand or by a slow clock. Hidden is late, never lost.
type floors struct {
	mu     sync.Mutex
	keys   map[string]*floor
	asking bool
	asked  time.Time // when we last asked, by our clock
	newest pulse
	open   []pulse   // those whose x is not below the newest m yet, oldest first
	safe   time.Time // t of the newest pulse with x <= m; zero: none
}

// pulse is one answer of the database.
type pulse struct {
	at     time.Time // t, the database's clock
	oldest int64     // m
	own    int64     // x
}

// floor is that of one routing key.
type floor struct {
	at      time.Time // of the database; zero: no floor
	sweepAt time.Time // when it is to be left out next, by our clock
	doubted bool      // a claim failed: what it locked may come back below any floor
}

// The order of the columns matters: the clock is read before the transaction gets its number.
const sqlPulse = `
SELECT clock_timestamp(), pg_snapshot_xmin(pg_current_snapshot())::text::bigint, pg_current_xact_id()::text::bigint`

// pulse asks the database where it is, if nobody does and the last time is long enough ago.
func (p *Store) pulse(ctx context.Context) error {
	if !p.floors.ask(time.Now()) {
		return nil
	}
	defer p.floors.answered()
	return p.work.query(ctx, "pulse", func(rows *sqlx.Rows) error {
		var b pulse
		if err := rows.Scan(&b.at, &b.oldest, &b.own); err != nil {
			return err
		}
		p.floors.add(b)
		return nil
	})
}

func (f *floors) ask(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asking || now.Sub(f.asked) < pulseEvery {
		return false
	}
	f.asking, f.asked = true, now
	return true
}

func (f *floors) answered() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asking = false
}

// add takes in a pulse. Where clock or numbers went back, it is another server or another history, of which we know
// nothing yet.
func (f *floors) add(b pulse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.at.Before(f.newest.at) || b.own < f.newest.own || b.oldest < f.newest.oldest {
		f.keys, f.open, f.safe = nil, nil, time.Time{}
	}
	f.newest = b
	f.open = append(f.open, b)
	for len(f.open) > 0 && f.open[0].own <= b.oldest {
		f.safe = f.open[0].at
		f.open = f.open[1:]
	}
	if len(f.open) > maxPulses {
		f.open = everySecond(f.open)
	}
}

// everySecond drops half of the pulses; the floor is a little lower for it, no more.
func everySecond(pulses []pulse) []pulse {
	kept := make([]pulse, 0, maxPulses)
	for i := 0; i < len(pulses); i += 2 {
		kept = append(kept, pulses[i])
	}
	return kept
}

// scan is one claim: the arrays that it sends, and what was known when it began.
type scan struct {
	keys    []string
	lapses  []int64
	limits  []int64
	from    []time.Time // the floor of each quota; zero: none
	safe    time.Time
	started time.Time
}

// begin gives each quota the floor of its routing key. Messages that lapsed have none: reclaim writes a due_at of the past.
func (f *floors) begin(quotas []relay.Quota, now time.Time) scan {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := scan{safe: f.safe, started: now}
	for _, q := range quotas {
		var from time.Time
		if q.Lapses == 0 {
			if k := f.key(q.RoutingKey); !k.doubted && now.Before(k.sweepAt) {
				from = k.at
			}
		}
		s.keys, s.lapses = append(s.keys, q.RoutingKey), append(s.lapses, int64(q.Lapses))
		s.limits, s.from = append(s.limits, int64(q.Limit)), append(s.from, from)
	}
	return s
}

func (f *floors) key(name string) *floor {
	if f.keys == nil {
		f.keys = map[string]*floor{}
	}
	if f.keys[name] == nil {
		f.keys[name] = &floor{}
	}
	return f.keys[name]
}

// floors are the quotas' floors as the database reads them.
func (s scan) floors() []string {
	texts := make([]string, len(s.from))
	for i, from := range s.from {
		texts[i] = "-infinity"
		if !from.IsZero() {
			texts[i] = from.UTC().Format(time.RFC3339Nano)
		}
	}
	return texts
}

// end moves the floors after a claim that was answered. fullTo is the last due_at of the full quotas, if one was full.
func (f *floors) end(s scan, claims []relay.Claim, fullTo, now time.Time) {
	taken := map[string]int64{}
	for _, c := range claims {
		if c.Lapses == 0 {
			taken[c.RoutingKey]++
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, name := range s.keys {
		if s.lapses[i] != 0 {
			continue
		}
		k := f.key(name)
		if s.from[i].IsZero() {
			k.sweepAt = now.Add(nextSweep(now.Sub(s.started)))
		}
		if k.doubted {
			k.doubted = false // and the next claim has no floor yet: what the failed one held may only now be free
			continue
		}
		k.at = s.safe
		if taken[name] >= s.limits[i] && fullTo.Before(k.at) {
			k.at = fullTo
		}
		k.at = lowered(k.at)
	}
}

// lowered takes the margin off. Before 1970 is no floor: nothing is gained by it, and Go and the database write such years
// differently.
func lowered(at time.Time) time.Time {
	if at.Year() < 1970 {
		return time.Time{}
	}
	return at.Add(-floorMargin)
}

// nextSweep spreads the sweeps, so that relays do not make them at once.
func nextSweep(took time.Duration) time.Duration {
	pause := max(sweepEvery, sweepShare*took)
	return pause + rand.N(pause/5)
}

// doubt takes the floors away after a claim without an answer: it may still run, or end without effect, and what it held
// was passed over by others meanwhile.
func (f *floors) doubt(s scan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, name := range s.keys {
		if s.lapses[i] == 0 {
			k := f.key(name)
			k.at, k.doubted = time.Time{}, true
		}
	}
}
