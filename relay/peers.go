package relay

import (
	"context"
	"slices"
	"time"
)

const (
	beatEvery  = 2 * time.Second
	peersEvery = time.Second
	peerAlive  = 3 * beatEvery                          // a relay that told nothing new for so long is dead
	joinAfter  = 2*peersEvery + 500*time.Millisecond    // after its first beat a relay has been seen by all others
	shareFor   = peerAlive - peersEvery - time.Second/2 // after a beat: others give its places away later than this
)

// peers is what this relay knows of the others. Who is alive it finds out by watching, as it does with leases: no wall
// clock takes part. Only the loop that beats uses it.
type peers struct {
	own    string
	seen   map[string]sighting
	joined time.Time // the first of the beats that followed each other without a gap
	beaten time.Time // the last one
}

// sighting is a relay, and since when it stands like this.
type sighting struct {
	Peer
	at time.Time
}

// beat tells others that this relay is alive and how its destinations are, and follows how many relays share them.
func (r *Relay) beat(ctx context.Context) {
	p := &peers{own: r.cfg.Name, seen: map[string]sighting{}}
	for {
		r.ticks.mark("beat")
		if asked := time.Now(); asked.Sub(p.beaten) >= beatEvery {
			err := r.call(ctx, "beat", func(ctx context.Context) error { return r.cfg.Database.Beat(ctx, r.presence()) })
			if err == nil {
				p.beat(asked)
			}
		}
		r.divide(ctx, p)
		if !sleep(ctx, peersEvery) {
			return
		}
	}
}

// divide takes this relay's share of what all relays together may use.
func (r *Relay) divide(ctx context.Context, p *peers) {
	if !slices.ContainsFunc(r.destinations, func(d *destination) bool { return d.Shared }) || p.beaten.IsZero() {
		return
	}
	err := r.call(ctx, "peers", func(ctx context.Context) error {
		told, err := r.cfg.Database.Peers(ctx)
		if err == nil {
			p.watch(told, time.Now())
		}
		return err
	})
	if err != nil {
		return
	}
	for _, d := range r.destinations {
		if !d.Shared {
			continue
		}
		relays := p.serving(d.Name, time.Now())
		places, part := p.share(relays, d.Width, time.Now())
		if d.take(places, part, p.beaten.Add(shareFor)) {
			r.log.Info("places at a destination", "destination", d.Name, "places", places, "of", d.Width, "relays", len(relays))
			r.wakeUp()
		}
	}
}

// beat takes that this relay told of itself, at a moment that is no later than when others could see it.
func (p *peers) beat(now time.Time) {
	if now.Sub(p.beaten) >= peerAlive {
		p.joined = now
	}
	p.beaten = now
}

func (p *peers) watch(told []Peer, now time.Time) {
	seen := make(map[string]sighting, len(told))
	for _, peer := range told {
		s, known := p.seen[peer.Name]
		if !known || s.Seen != peer.Seen {
			s = sighting{peer, now}
		}
		seen[peer.Name] = s
	}
	p.seen = seen
}

// serving returns the names of the relays that are alive and serve a destination, this one among them, sorted.
func (p *peers) serving(destination string, now time.Time) []string {
	names := []string{p.own}
	for name, s := range p.seen {
		if name != p.own && now.Sub(s.at) < peerAlive && slices.Contains(s.Destinations, destination) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// share divides a width among relays, and says which part of a rate goes with it. Where there are more relays than places,
// the first by name have one each. Who has just joined waits until the others have seen it.
func (p *peers) share(relays []string, width int, now time.Time) (places int, part float64) {
	if len(relays) > 1 && now.Sub(p.joined) < joinAfter {
		return 0, 0
	}
	workers := min(len(relays), width)
	i := slices.Index(relays, p.own)
	if i >= workers {
		return 0, 0
	}
	return width/workers + btoi(i < width%workers), 1 / float64(workers)
}
