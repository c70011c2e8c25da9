package relay

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	busyPoll = 10 * time.Millisecond  // the longest wait while there is work; the shortest is half of it
	busyFor  = time.Second            // after a claim that brought something
	idlePoll = 250 * time.Millisecond // the longest wait when nothing is due
)

// claimer is the loop that claims. Its fields belong to that loop alone.
type claimer struct {
	*Relay
	lanes      map[string]*lane
	routes     *routing        // that lanes was made by
	version    int             // of the known routing keys that lanes was made of
	asked      map[turn]string // the lane asked last, of each destination with more lanes than places
	crowded    bool            // this round leaves out lanes that have no place
	wait       time.Duration
	busyUntil  time.Time
	nextLapsed time.Time
	suspect    bool // a message that lapsed more than once waits or is in flight here
	quiet      bool // with Once: the last round brought nothing, and the routing keys are fresh
}

// run claims until ctx ends: at once after a full batch, within milliseconds while there is work, and down to four times
// a second while there is none. Before its first claim it knows what is paused. With Once it also ends when nothing is left.
func (c *claimer) run(ctx context.Context) {
	err := c.prepare(ctx)
	for wait := firstRepeat; ctx.Err() == nil && err != nil && !c.refusedOnce(err); wait = min(2*wait, lastRepeat) {
		c.ticks.mark("claim")
		sleep(ctx, wait)
		err = c.prepare(ctx)
	}
	for ctx.Err() == nil && !c.refusedOnce(err) {
		c.ticks.mark("claim")
		var got int
		var full bool
		got, full, err = c.round(ctx)
		if c.cfg.Once && err == nil && (c.seat.standby() || c.finished(ctx, got)) {
			return
		}
		c.pause(ctx, got, full, err)
	}
}

// refusedOnce tells, with Once, that there is nothing to wait for, since the outbox belongs to another instance.
func (c *claimer) refusedOnce(err error) bool { return c.cfg.Once && errors.Is(err, ErrForeign) }

func (c *claimer) pause(ctx context.Context, got int, full bool, err error) {
	if got > 0 {
		c.busyUntil = time.Now().Add(busyFor)
	}
	switch {
	case err != nil:
		c.wait = min(max(2*c.wait, 50*time.Millisecond), 2*time.Second)
	case full:
		c.wait = 0
		return
	case c.crowded || time.Now().Before(c.busyUntil):
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
	c.crowded = false
	if c.settler.congested() || !c.seat.ours() {
		return 0, false, nil
	}
	// Suspects go one by one, so that a pause between them would be their rate.
	if now := time.Now(); c.suspect || !now.Before(c.nextLapsed) {
		got, _ = c.lapsedRound(ctx) // call has logged an error: it stops only this
		c.nextLapsed = time.Now().Add(max(lapsedEvery, 20*time.Since(now)))
	}
	probes, _ := c.probe(ctx)
	fresh, full, err := c.claim(ctx, c.quotas(0), nil)
	return got + probes + fresh, full, err
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

// ask makes the claim. Where the answer is lost it asks again under the same lease, as long as that lease would last and the
// relay may claim: then the claim was either made, and its answer comes, or it is made now. So it does where only the
// connection of the claim led to an outbox of another instance: the next one may lead to ours. A stop gives an asking a second
// more, because its messages would lapse.
func (c *claimer) ask(ctx context.Context, id LeaseID, asked time.Time, quotas []Quota) (claims []Claim, again bool, err error) {
	patient, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { sleep(patient, leaveTime); cancel() })()
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err = c.call(patient, "claim", func(ctx context.Context) (err error) {
			claims, err = c.cfg.Database.Claim(ctx, id, c.cfg.Lease, quotas)
			return err
		})
		refused := errors.Is(err, ErrForeign) && c.owner.why() != ""
		if err == nil || ctx.Err() != nil || refused || time.Since(asked)+wait > c.cfg.Lease-c.leases.margin() {
			return claims, again, err
		}
		again = true
		if sleep(ctx, wait); !c.seat.ours() {
			return nil, again, err
		}
	}
}

// finished tells, with Once, whether nothing that may be claimed is due or in flight: after a quiet round and a fresh look
// for new routing keys, nothing is seen to wait. An open breaker is given its first probes.
func (c *claimer) finished(ctx context.Context, got int) bool {
	if got > 0 || c.leases.busy() || !c.idle.Load() {
		c.quiet = false
		return false
	}
	if !c.quiet {
		c.quiet = c.discoverOnce(ctx) == nil
		return false
	}
	var keys []string
	for key, l := range c.lanes {
		if !l.dest.away(key) && !c.pauses.lane(l.dest.Name, key) {
			keys = append(keys, key)
		}
	}
	waiting, err := c.look(ctx, Look{RoutingKeys: keys, Limit: 1})
	suspects, err2 := c.look(ctx, Look{RoutingKeys: keys, Suspects: true, Limit: 1})
	return err == nil && err2 == nil && len(waiting)+len(suspects) == 0
}
