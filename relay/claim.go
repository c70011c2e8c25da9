package relay

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"
)

const (
	busyPoll    = 10 * time.Millisecond  // the longest wait after a claim that brought something; the shortest is half of it
	idlePoll    = 250 * time.Millisecond // the longest wait when nothing is due
	lapsedEvery = 250 * time.Millisecond // between looks for messages that lapsed
	firstLook   = 10000                  // a probe is one of so many messages that are due first
	lastLook    = 100                    // or of so many that are due last
)

// lane is a routing key and where it goes.
type lane struct {
	key   string
	route *Route
	dest  *destination
	busy  bool // its last claim came back full
}

// claimer is the loop that claims. Its fields belong to that loop alone.
type claimer struct {
	*Relay
	lanes      map[string]*lane
	turn       int // which lane comes first when there are more lanes than places
	wait       time.Duration
	nextLapsed time.Time
	suspect    bool // a message that lapsed more than once waits or is in flight here
	quiet      int  // rounds in a row in which nothing was due
}

// run claims until ctx ends: at once after a full batch, within milliseconds while there is work, and down to four times
// a second while there is none. With Once it also ends when nothing is left.
func (c *claimer) run(ctx context.Context) {
	for ctx.Err() == nil {
		c.ticks.mark("claim")
		got, full, err := c.round(ctx)
		if c.cfg.Once && err == nil && c.finished(ctx, got) {
			return
		}
		c.pause(ctx, got, full, err)
	}
}

func (c *claimer) pause(ctx context.Context, got int, full bool, err error) {
	switch {
	case err != nil:
		c.wait = min(max(2*c.wait, 50*time.Millisecond), 2*time.Second)
	case full:
		return
	case got > 0:
		c.wait = busyPoll
	default:
		c.wait = min(max(2*c.wait, busyPoll), idlePoll)
	}
	timer := time.NewTimer(c.wait/2 + rand.N(c.wait/2))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.wake:
	case <-ctx.Done():
	}
}

// round claims what is due for all lanes that have room, and sets it flying. full says that there is probably more.
func (c *claimer) round(ctx context.Context) (got int, full bool, err error) {
	c.route()
	if c.settler.congested() {
		return 0, false, nil
	}
	if now := time.Now(); !now.Before(c.nextLapsed) {
		c.nextLapsed = now.Add(lapsedEvery)
		if got, err = c.lapsedRound(ctx); err != nil {
			return got, false, err
		}
	}
	probes, err := c.probe(ctx)
	if err != nil {
		return got, false, err
	}
	fresh, full, err := c.claim(ctx, c.quotas(0), nil)
	return got + probes + fresh, full, err
}

// lapsedRound claims messages that lapsed once, in a batch of their own. One that lapsed more often is claimed alone, and
// while it waits or is in flight no other lapsed message is claimed here: so one message that kills its relay is found,
// and its neighbours lapse twice at most.
func (c *claimer) lapsedRound(ctx context.Context) (int, error) {
	if c.suspect && c.lapsed.Load() > 0 {
		return 0, nil
	}
	suspects, err := c.look(ctx, Look{RoutingKeys: c.roomy(), Suspects: true, Limit: 1})
	if err != nil {
		return 0, err
	}
	if c.suspect = len(suspects) > 0; !c.suspect {
		got, _, err := c.claim(ctx, c.quotas(1), nil)
		return got, err
	}
	if c.lapsed.Load() > 0 {
		return 0, nil
	}
	s := suspects[rand.IntN(len(suspects))]
	got, _, err := c.claim(ctx, []Quota{{RoutingKey: s.RoutingKey, ID: s.ID, Limit: 1}}, nil)
	return got, err
}

// probe sends one message to each destination or lane whose breaker is open and whose pause is over.
func (c *claimer) probe(ctx context.Context) (got int, err error) {
	for _, d := range c.destinations {
		b, key := d.dueProbe(time.Now())
		if b == nil {
			continue
		}
		n, err := c.probeOne(ctx, d, b, key)
		if n == 0 {
			d.voidProbe(time.Now(), b)
		}
		if got += n; err != nil {
			return got, err
		}
	}
	return got, nil
}

func (c *claimer) probeOne(ctx context.Context, d *destination, b *breaker, key string) (int, error) {
	look := Look{RoutingKeys: []string{key}, Newest: d.turn(b)}
	if key == "" {
		look.RoutingKeys = c.keysOf(d)
	}
	if len(look.RoutingKeys) == 0 {
		return 0, nil
	}
	look.Limit = firstLook/len(look.RoutingKeys) + 1
	if look.Newest {
		look.Limit = lastLook/len(look.RoutingKeys) + 1
	}
	waiting, err := c.look(ctx, look)
	if err == nil && len(waiting) == 0 && c.lapsed.Load() == 0 {
		waiting, err = c.look(ctx, Look{RoutingKeys: look.RoutingKeys, Suspects: true, Limit: 1})
	}
	one, ok := pickProbe(waiting)
	if err != nil || !ok {
		return 0, err
	}
	got, _, err := c.claim(ctx, []Quota{{RoutingKey: one.RoutingKey, ID: one.ID, Limit: 1}}, b)
	return got, err
}

func (c *claimer) look(ctx context.Context, l Look) (waiting []Waiting, err error) {
	if len(l.RoutingKeys) == 0 {
		return nil, nil
	}
	err = c.call(ctx, "waiting", func(ctx context.Context) (err error) {
		waiting, err = c.cfg.Database.Waiting(ctx, l)
		return err
	})
	return waiting, err
}

// claim asks for messages under one new lease and sets those that came flying, apart for each destination.
func (c *claimer) claim(ctx context.Context, quotas []Quota, probe *breaker) (got int, full bool, err error) {
	if len(quotas) == 0 || ctx.Err() != nil {
		return 0, false, nil
	}
	id, asked := newLeaseID(), time.Now()
	claims, again, err := c.ask(ctx, id, asked, quotas)
	if err != nil || len(claims) == 0 {
		c.mark(quotas, nil)
		return 0, false, err
	}
	l := c.leases.add(c.sending, id, asked, again, len(claims))
	byDest, byKey := map[*destination][]Claim{}, map[string]int{}
	for _, m := range claims {
		d := c.lanes[m.RoutingKey].dest
		d.reserve(m.RoutingKey)
		if m.Lapses > 0 {
			c.lapsed.Add(1)
		}
		byDest[d] = append(byDest[d], m)
		byKey[m.RoutingKey]++
	}
	for d, claims := range byDest {
		f := flight{dest: d, lease: l, since: asked, probe: probe}
		c.flights.Go(func() { c.fly(f, claims) })
	}
	for key, n := range byKey {
		c.observe(Event{Kind: EventClaim, Destination: c.lanes[key].dest.Name, RoutingKey: key, Count: n, Took: time.Since(asked)})
	}
	return len(claims), c.mark(quotas, byKey), nil
}

// ask makes the claim. Where the answer is lost it asks again under the same lease, as long as that lease would last:
// then the claim was either made, and its answer comes, or it is made now. A stop does not cut an asking off, because its
// messages would lapse.
func (c *claimer) ask(ctx context.Context, id LeaseID, asked time.Time, quotas []Quota) (claims []Claim, again bool, err error) {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err = c.call(context.WithoutCancel(ctx), "claim", func(ctx context.Context) (err error) {
			claims, err = c.cfg.Database.Claim(ctx, id, c.cfg.Lease, quotas)
			return err
		})
		if err == nil || ctx.Err() != nil || time.Since(asked)+wait > c.cfg.Lease-c.leases.margin() {
			return claims, again, err
		}
		again = true
		sleep(ctx, wait)
	}
}

// mark remembers which lanes are busy, and tells whether any claim came back full.
func (c *claimer) mark(quotas []Quota, byKey map[string]int) (full bool) {
	for _, q := range quotas {
		l := c.lanes[q.RoutingKey]
		l.busy = q.ID == "" && byKey[q.RoutingKey] >= q.Limit
		full = full || l.busy
	}
	return full
}

// quotas divides the free places of each destination among its lanes: one place for each, the rest for those that were
// busy the last time, or for all if none was.
func (c *claimer) quotas(lapses int) []Quota {
	var quotas []Quota
	for _, d := range c.destinations {
		lanes, busy, all := c.lanesOf(d)
		if len(lanes) == 0 {
			continue
		}
		all = min(all, maxBatch)
		if len(lanes) > all { // more lanes than places: they take turns
			c.turn++
			rotated := append(lanes[c.turn%len(lanes):len(lanes):len(lanes)], lanes[:c.turn%len(lanes)]...)
			lanes, busy = rotated[:all], 0
		}
		sharers := busy
		if sharers == 0 {
			sharers = len(lanes)
		}
		share := (all - len(lanes)) / max(1, sharers)
		for _, l := range lanes {
			_, room := d.room(l.key)
			limit := 1
			if busy == 0 || l.busy {
				limit += share
			}
			quotas = append(quotas, Quota{RoutingKey: l.key, Lapses: lapses, Limit: min(limit, room)})
		}
	}
	return quotas
}

// lanesOf returns the lanes of a destination that have room, in order of their keys, how many of them were busy, and the
// destination's room in all.
func (c *claimer) lanesOf(d *destination) (lanes []*lane, busy, all int) {
	for _, key := range c.keysOf(d) {
		var room int
		if all, room = d.room(key); room > 0 {
			lanes = append(lanes, c.lanes[key])
			busy += btoi(c.lanes[key].busy)
		}
	}
	return lanes, busy, all
}

// finished tells, with Once, whether nothing that may be claimed is due or in flight: two rounds in a row, with a fresh
// look for lapsed messages and for new routing keys between them. An open breaker is given its first probes.
func (c *claimer) finished(ctx context.Context, got int) bool {
	if got > 0 || c.leases.busy() || c.suspect {
		c.quiet = 0
		return false
	}
	for _, d := range c.destinations {
		if d.state().State == "open" && !d.away() {
			return false
		}
	}
	if c.quiet++; c.quiet == 1 {
		c.nextLapsed = time.Time{}
		if c.discoverOnce(ctx) != nil {
			c.quiet = 0
		}
		return false
	}
	return true
}

// matches tells whether a route takes a routing key.
func (r *Route) matches(key string) bool {
	if prefix, ok := strings.CutSuffix(r.Match, "*"); ok {
		return strings.HasPrefix(key, prefix)
	}
	return key == r.Match
}
