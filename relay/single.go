package relay

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	lapsedEvery  = 250 * time.Millisecond // between looks for messages that lapsed
	firstLook    = 10000                  // a probe is one of so many messages that are due first
	someSuspects = 10                     // one of them at random, since somebody may lock the first
	lastLook     = 100                    // or of so many that are due last
)

// lapsedRound claims messages that lapsed once, in a batch of their own. One that lapsed more often is claimed alone, and
// while it waits or is in flight no other lapsed message is claimed here: so one message that kills its relay is found,
// and its neighbours lapse twice at most.
func (c *claimer) lapsedRound(ctx context.Context) (int, error) {
	if c.suspect && c.lapsed.Load() > 0 {
		return 0, nil
	}
	suspects, err := c.look(ctx, Look{RoutingKeys: c.roomy(), Suspects: true, Limit: someSuspects})
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
	look := Look{RoutingKeys: c.keysOf(d), Newest: d.turn(b)}
	if key != "" { // of a lane; none where its routing key is not known any more
		look.RoutingKeys = slices.DeleteFunc(look.RoutingKeys, func(k string) bool { return k != key })
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

func (r *Relay) look(ctx context.Context, l Look) (waiting []Waiting, err error) {
	if len(l.RoutingKeys) == 0 {
		return nil, nil
	}
	err = r.call(ctx, "waiting", func(ctx context.Context) (err error) {
		waiting, err = r.cfg.Database.Waiting(ctx, l)
		return err
	})
	return waiting, err
}
