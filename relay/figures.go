package relay

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	exporterDuty  = "exporter"       // of the one relay that tells figures of the whole table
	figuresEvery  = 10 * time.Second // so that none is older than 15 s, in ordinary times
	figuresFor    = time.Minute      // what was read so long ago is told no longer
	figuresBudget = 5 * time.Second  // of one reading; routing keys that it does not come to are Beyond
	depthKeys     = 100              // routing keys a call
	depthLimit    = 1000             // pending messages of a routing key and a number of lapses
	depthRows     = 50_000           // the same of all routing keys, while there is one for each
	totalsLimit   = 5000             // messages in flight, and failed ones
)

// Figures are what one relay tells of the whole table.
type Figures struct {
	Read   time.Time // when they were last read; zero: never
	Fresh  bool      // they may be told: read less than a minute ago, by a relay that has the duty to tell them
	Depths []Depth   // of each routing key under which something waits, or did lately, or that a route names in full
	Totals Totals
	Beyond bool // there were more routing keys than a reading comes to
}

// Unrouted is how many messages are due and have no route, at least.
func (f *Figures) Unrouted() (n int) {
	for _, d := range f.Depths {
		if d.Destination == "" {
			n += d.Due
		}
	}
	return n
}

// telling is what this relay tells of the whole table, for other goroutines.
type telling struct {
	mu      sync.Mutex
	figures *Figures  // nil: another relay tells them, or none
	until   time.Time // the duty is ours for so long
}

// figures reads what is told of the whole table, while this relay has the duty to tell it.
func (r *Relay) figures(ctx context.Context) {
	d := r.newDuty(exporterDuty, "")
	var began time.Time // of the last reading
	var by *routing     // under which it was made
	for wait := time.Duration(0); sleep(ctx, wait); {
		r.ticks.mark("figures")
		d.keep(ctx)
		r.telling.hold(d)
		wait = d.length() / 6
		if !d.ours() {
			continue
		}
		if routes := r.routing.Load(); routes != by || time.Since(began) >= figuresEvery {
			began, by = time.Now(), routes
			r.readFigures(ctx, routes)
		}
		wait = max(min(wait, figuresEvery-time.Since(began)), 10*time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	d.leave(ctx)
}

// readFigures reads them all. Where one call fails all stay as they were.
func (r *Relay) readFigures(ctx context.Context, routes *routing) {
	f := Figures{Read: time.Now()}
	err := r.call(ctx, "totals", func(ctx context.Context) (err error) {
		f.Totals, err = r.cfg.Database.Totals(ctx, totalsLimit)
		return err
	})
	if err == nil {
		f.Depths, f.Beyond, err = r.depths(ctx, routes, f.Read)
	}
	if err == nil {
		r.telling.tell(f)
	}
}

// depths looks at all routing keys that are known, those first that routes name in full. The more there are, the fewer
// messages of each are looked at; the oldest is among them.
func (r *Relay) depths(ctx context.Context, routes *routing, began time.Time) (depths []Depth, beyond bool, err error) {
	keys := r.figureKeys(routes)
	limit := min(depthLimit, max(1, depthRows/max(1, len(keys))))
	for page := range slices.Chunk(keys, depthKeys) {
		if time.Since(began) >= figuresBudget {
			return depths, true, nil
		}
		r.ticks.mark("figures")
		err := r.call(ctx, "depths", func(ctx context.Context) error {
			found, err := r.cfg.Database.Depths(ctx, page, limit)
			depths = append(depths, found...)
			return err
		})
		if err != nil {
			return nil, false, err
		}
	}
	for i := range depths {
		if route := routes.routeOf(depths[i].RoutingKey); route != nil {
			depths[i].Destination = route.To
		}
	}
	return depths, false, nil
}

func (r *Relay) figureKeys(routes *routing) []string {
	var keys []string
	for _, route := range routes.routes {
		if !strings.HasSuffix(route.Match, "*") && !slices.Contains(keys, route.Match) {
			keys = append(keys, route.Match)
		}
	}
	named := len(keys)
	known, _ := r.known.since(-1)
	slices.Sort(known)
	for _, key := range known {
		if !slices.Contains(keys[:named], key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// hold takes in whether this relay has the duty. What it read under an earlier one is not told under the next.
func (t *telling) hold(d *duty) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = d.until
	switch {
	case !d.ours():
		t.figures = nil
	case t.figures == nil:
		t.figures = &Figures{}
	}
}

func (t *telling) tell(f Figures) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.figures = &f
}

// now are the figures as they may be told now; nil: it is not this relay that tells them.
func (t *telling) now(now time.Time) *Figures {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.figures == nil {
		return nil
	}
	f := *t.figures
	f.Fresh = now.Before(t.until) && now.Sub(f.Read) < figuresFor
	if !f.Fresh {
		f.Depths, f.Totals = nil, Totals{}
	}
	return &f
}
