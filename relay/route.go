package relay

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	discoverEvery = time.Second      // between looks for new routing keys; more where a look takes long
	rememberKey   = 10 * time.Minute // a routing key is asked for so long after something was last seen to wait under it
)

// known are the routing keys that messages wait under, or did lately: one that is empty now and then must not be
// discovered anew each time.
type known struct {
	mu      sync.Mutex
	seen    map[string]time.Time
	version int // grows with each routing key that comes or goes
}

func (k *known) add(keys []string, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := len(k.seen)
	for _, key := range keys {
		k.seen[key] = now
	}
	k.version += len(k.seen) - before
	before = len(k.seen)
	maps.DeleteFunc(k.seen, func(_ string, at time.Time) bool { return now.Sub(at) > rememberKey })
	k.version += before - len(k.seen)
}

// since returns the routing keys, if they changed after that version.
func (k *known) since(version int) (keys []string, now int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.version == version {
		return nil, version
	}
	return slices.Collect(maps.Keys(k.seen)), k.version
}

// discover keeps the known routing keys current. A message of a key that no route matches is never claimed.
func (r *Relay) discover(ctx context.Context) {
	for ctx.Err() == nil {
		r.ticks.mark("discover")
		began := time.Now()
		if r.seat.ours() {
			_ = r.discoverOnce(ctx) // call has logged it, and the next look is soon
		}
		sleep(ctx, max(discoverEvery, 20*time.Since(began)))
	}
}

func (r *Relay) discoverOnce(ctx context.Context) error {
	return r.call(ctx, "routing_keys", func(ctx context.Context) error {
		keys, err := r.cfg.Database.RoutingKeys(ctx)
		if err == nil {
			r.known.add(keys, time.Now())
		}
		return err
	})
}

// route makes lanes of the routing keys that are known, and of those that routes name in full, when they or the routes
// changed.
func (c *claimer) route() {
	routes := c.routing.Load()
	if routes != c.routes {
		c.routes, c.version = routes, -1
	}
	keys, version := c.known.since(c.version)
	if version == c.version {
		return
	}
	c.version = version
	for _, r := range routes.routes {
		if !strings.HasSuffix(r.Match, "*") {
			keys = append(keys, r.Match)
		}
	}
	lanes := make(map[string]*lane, len(keys))
	for _, key := range keys {
		route := routes.routeOf(key)
		if route == nil {
			continue
		}
		to := c.destination(route.To)
		if l := c.lanes[key]; l != nil && l.dest == to {
			lanes[key] = l
		} else {
			lanes[key] = &lane{key: key, dest: to}
		}
	}
	c.lanes = lanes
	for _, d := range c.destinations {
		d.forget(func(key string) bool { return lanes[key] != nil })
	}
}

func (r *Relay) destination(name string) *destination {
	i := slices.IndexFunc(r.destinations, func(d *destination) bool { return d.Name == name })
	return r.destinations[i]
}

// keysOf returns the routing keys of a destination that are not paused, sorted.
func (c *claimer) keysOf(d *destination) []string {
	var keys []string
	for key, l := range c.lanes {
		if l.dest == d && !c.pauses.lane(d.Name, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// roomy returns the routing keys for which a message may be claimed now.
func (c *claimer) roomy() []string {
	var keys []string
	for key, l := range c.lanes {
		if _, room := l.dest.room(key); room > 0 && !c.pauses.lane(l.dest.Name, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
