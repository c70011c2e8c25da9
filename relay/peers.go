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
	shareFor   = peerAlive - peersEvery - time.Second/2 // after a beat: others give its places away later than this
	joinAfter  = shareFor + time.Second/2               // after its first beat: the shares of those that have not seen it are over
)

// peers is what this relay knows of the others. Who is alive it finds out by watching, as it does with leases: no wall
// clock takes part. Only the loop that beats uses it.
type peers struct {
	own    string
	seen   map[string]sighting
	joined time.Time // the first of the beats that followed each other without a gap, and said the same of active
	active bool      // the last one said that we do not stand by
	beaten time.Time // the last one
	quiet  bool      // no beat was tried since the last look
	twin   time.Time // when somebody else last beat under this name
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
		r.divide(ctx, p)
		if asked, active := time.Now(), r.seat.ours(); asked.Sub(p.beaten) >= beatEvery || active != p.active {
			_ = r.belongs(ctx) // else it tells of no destinations
			err := r.call(ctx, "beat", func(ctx context.Context) error { return r.cfg.Database.Beat(ctx, r.presence(active)) })
			if p.quiet = false; err == nil {
				p.beat(asked, time.Now(), active)
				r.divide(ctx, p) // what changes under our name from here to the next look is not ours
			}
		}
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
	now := time.Now()
	if p.doubled(now) && r.faults.due("twin") {
		r.log.Error("another relay runs under this name: give each relay.name once, or leave it out", "relay", r.cfg.Name)
	}
	for _, d := range r.destinations {
		if !d.Shared {
			continue
		}
		relays := p.serving(d.Name, now)
		if d.take(p.part(relays, now), p.beaten.Add(shareFor)) {
			places, width := d.places()
			r.log.Info("places at a destination", "destination", d.Name, "places", places, "of", width, "relays", len(relays))
			r.wakeUp()
		}
	}
}

// beat takes that this relay told of itself, and whether it stands by: asked for at one moment, and there for others to see
// at the other.
func (p *peers) beat(asked, there time.Time, active bool) {
	if asked.Sub(p.beaten) >= peerAlive || active != p.active {
		p.joined = there
	}
	p.beaten, p.active = asked, active
}

func (p *peers) watch(told []Peer, now time.Time) {
	seen := make(map[string]sighting, len(told))
	for _, peer := range told {
		s, known := p.seen[peer.Name]
		if !known || s.Seen != peer.Seen {
			if known && peer.Name == p.own && p.quiet {
				p.twin = now
			}
			s = sighting{peer, now}
		}
		seen[peer.Name] = s
	}
	p.seen, p.quiet = seen, true
}

// doubled tells that another relay beats under this one's name.
func (p *peers) doubled(now time.Time) bool { return !p.twin.IsZero() && now.Sub(p.twin) < peerAlive }

// serving returns the names of the relays that are alive and serve a destination, this one among them, sorted.
func (p *peers) serving(destination string, now time.Time) []string {
	names := []string{p.own}
	if p.doubled(now) {
		names = append(names, p.own)
	}
	for name, s := range p.seen {
		if name != p.own && now.Sub(s.at) < peerAlive && slices.Contains(s.Destinations, destination) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// part is this relay's among those that share something. Who has just joined waits until no other can take it for absent.
func (p *peers) part(relays []string, now time.Time) part {
	if !p.active || len(relays) > 1 && now.Sub(p.joined) < joinAfter {
		return part{}
	}
	return part{turn: slices.Index(relays, p.own), of: len(relays)}
}

// part says which one this relay is, in order of the names, of how many that share a destination. Its zero value is none:
// nobody knows yet.
type part struct{ turn, of int }

// whole is that of a relay which shares with nobody.
var whole = part{turn: 0, of: 1}

// sharers is how many relays have places. Where there are more relays than places, the first have one each.
func (p part) sharers(width int) int { return min(p.of, width) }

// standby tells that other relays have all places.
func (p part) standby(width int) bool { return p.of > 0 && p.turn >= p.sharers(width) }

func (p part) places(width int) int {
	if p.of == 0 || p.standby(width) {
		return 0
	}
	n := p.sharers(width)
	return width/n + btoi(p.turn < width%n)
}

// rate is how much of a rate goes with the places, of 1.
func (p part) rate(width int) float64 {
	if p.places(width) == 0 {
		return 0
	}
	return 1 / float64(p.sharers(width))
}
