package relay

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// destination is a Destination at work: who is under way to it, how many bytes they hold, and its breakers.
type destination struct {
	Destination
	log   *slog.Logger
	freed func() // called when so many places are free again that a claim is worth while

	mu       sync.Mutex
	whole    *breaker            // speaks for the destination
	keys     map[string]*breaker // of PerKey: one for each routing key
	inFlight int
	share    share
	bytes    int
	changed  chan struct{} // closed and made anew whenever bytes shrinks
	crowded  bool          // of one that remembers no key: what was claimed last found no memory

	next chan struct{} // held by who waits for bytes: first come, first served, so that a large message gets its turn
}

func newDestination(d Destination, log *slog.Logger, freed func()) *destination {
	return &destination{
		Destination: d, log: log, freed: freed, whole: newBreaker(d.Breaker), keys: map[string]*breaker{},
		share: newShare(d), changed: make(chan struct{}), next: make(chan struct{}, 1),
	}
}

// breakers are those that a message of the routing key has to pass.
func (d *destination) breakers(key string) []*breaker {
	if !d.PerKey {
		return []*breaker{d.whole}
	}
	lane := d.keys[key]
	if lane == nil {
		lane = newBreaker(d.Breaker)
		d.keys[key] = lane
	}
	return []*breaker{d.whole, lane}
}

// room is how many messages may be claimed for the destination now, and of them how many of this routing key.
func (d *destination) room(key string) (all, lane int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.crowded {
		return 0, 0
	}
	all = d.whole.room(d.share.room(time.Now(), d.inFlight))
	lane = all
	for _, b := range d.breakers(key) {
		lane = b.room(lane)
	}
	return all, lane
}

// places are those of this relay, of how many in all.
func (d *destination) places() (mine, width int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.share.places, d.Width
}

// dedupe is how long the destination remembers a wire key.
func (d *destination) dedupe() Dedupe {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Dedupe
}

// reserve takes a place for a message of this routing key that was claimed.
func (d *destination) reserve(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inFlight++
	d.share.unstarted++
	for _, b := range d.breakers(key) {
		b.inFlight++
	}
}

// free gives the place back of a message that was sent, or that did not even begin.
func (d *destination) free(key string, begun bool) {
	d.mu.Lock()
	d.inFlight--
	if !begun {
		d.share.unstarted--
	}
	for _, b := range d.breakers(key) {
		b.inFlight--
	}
	limit := d.share.limit(time.Now())
	worthwhile := limit-d.inFlight >= min(maxBatch, max(1, limit/4))
	d.mu.Unlock()
	if worthwhile {
		d.freed()
	}
}

// hold waits until so many bytes fit into memory beside those of other messages; more than MaxBytes fit alone. It returns
// an error if ctx ends first, and where the destination remembers no key it does not wait: a crash would end what waits.
func (d *destination) hold(ctx context.Context, bytes int) error {
	select {
	case d.next <- struct{}{}:
		defer func() { <-d.next }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		d.mu.Lock()
		if d.bytes == 0 || d.bytes+bytes <= d.MaxBytes {
			d.bytes += bytes
			d.mu.Unlock()
			return nil
		}
		changed := d.changed
		d.crowded = d.Dedupe.Never
		crowded := d.crowded
		d.mu.Unlock()
		if crowded {
			return errNotNow
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (d *destination) drop(bytes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bytes -= bytes
	d.crowded = false
	close(d.changed)
	d.changed = make(chan struct{})
}

// openings counts how often the breakers of the routing key have opened; count compares it over a send.
func (d *destination) openings(key string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range d.breakers(key) {
		n += b.openings
	}
	return n
}

// count tells the breakers what a send came to that began when they had opened before times. opened says that one of them
// opened while it was under way, which makes its failure free, and old news to them; a probe is always charged.
func (d *destination) count(now time.Time, c Claim, o Outcome, probe *breaker, before int) (opened bool, pause time.Duration) {
	text := o.Class
	if o.Err != "" {
		text += ": " + clean(o.Err, maxResultBytes)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range d.breakers(c.RoutingKey) {
		before -= b.openings
		pause = max(pause, b.pause)
	}
	d.leaveAlone(now, o)
	opened = probe == nil && before != 0
	good := o.Kind == KindDone || o.Kind == KindFail
	for _, b := range d.breakers(c.RoutingKey) {
		wasOpen := b.open
		switch concerns := !d.PerKey || good || o.Wide == (b == d.whole); {
		case b == probe && concerns:
			b.probed(now, o.Kind, text)
		case b == probe: // of the whole: one topic failed, so the cluster answers
			b.probed(now, KindDone, "")
		case concerns && (good || !opened):
			b.report(now, o.Kind, c, text, d.Width)
		}
		d.tell(b, c.RoutingKey, wasOpen)
	}
	return opened, pause
}

// tell logs that a breaker opened or closed.
func (d *destination) tell(b *breaker, key string, wasOpen bool) {
	if b.open == wasOpen {
		return
	}
	if b == d.whole {
		key = "all"
	}
	if b.open {
		d.log.Warn("destination open: only a probe goes out now and then", "destination", d.Name, "routing_key", key, "err", b.lastErr)
	} else {
		d.log.Info("destination answers again", "destination", d.Name, "routing_key", key)
	}
}

// voidProbe says that the probe came to no outcome.
func (d *destination) voidProbe(now time.Time, b *breaker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if b.probing {
		b.probed(now, "", "")
	}
}

// dueProbe returns the breaker that wants a probe now and the routing key it is about, "" for all of the destination, and
// marks it as probing. The lanes ask only while the destination itself is not open, and a probe needs a place, too.
func (d *destination) dueProbe(now time.Time) (b *breaker, key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.share.room(now, d.inFlight) == 0 {
		return nil, ""
	}
	if d.whole.wantsProbe(now) {
		d.whole.probing = true
		return d.whole, ""
	}
	if d.whole.open {
		return nil, ""
	}
	for key, b := range d.keys {
		if b.wantsProbe(now) {
			b.probing = true
			return b, key
		}
	}
	return nil, ""
}

// turn tells which end of the queue the next probe is from; the ends take turns.
func (d *destination) turn(b *breaker) (newest bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b.fromEnd = !b.fromEnd
	return !b.fromEnd
}

// forget drops the breakers of routing keys that are not known any more and that nothing is in flight of.
func (d *destination) forget(known func(key string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.keys, func(key string, b *breaker) bool { return b.inFlight == 0 && !known(key) })
}

// away tells that run --once need not wait for messages of the routing key: other relays have all places, a breaker is open
// and a fair number of probes have failed, or sends that do not end hold all places.
func (d *destination) away(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	hung := d.share.places > 0 && d.inFlight >= d.share.places
	return d.share.part.standby(d.Width) || hung || slices.ContainsFunc(d.breakers(key), func(b *breaker) bool { return b.open && b.failed >= earlyProbes })
}
