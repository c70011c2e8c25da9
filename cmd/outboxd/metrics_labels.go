package main

import (
	"maps"
	"slices"
	"strings"
)

// other stands for every name that has no series of its own, so that no row can make one.
const other = "other"

// labels are the values that labels may have: what the configuration names, as far as there is room for it.
type labels struct {
	destinations, routingKeys, types map[string]bool
	pairs                            map[pair]bool // with series of their own; the type other of each destination is among them
	lanes                            map[lane]bool // of queue age
	coarse                           bool          // histograms have the type other only
	plain                            bool          // histograms have no classic buckets
}

// pair is a type that goes to a destination.
type pair struct{ kind, destination string }

// lane is a pair under a routing key.
type lane struct{ routingKey, kind, destination string }

// named is what a configuration names.
type named struct {
	destinations, routingKeys, types []string // sorted
	lanes                            []lane
}

func namedBy(c config) named {
	var n named
	for _, r := range c.Routes {
		key := other
		if !strings.HasSuffix(r.Match, "*") {
			key = r.Match
			n.routingKeys = append(n.routingKeys, key)
		}
		n.add(key, other, r.To)
		for name := range r.Types {
			if !strings.HasSuffix(name, "*") {
				n.add(key, name, r.To)
			}
		}
		for _, policy := range r.policyKeys() {
			if e := r.emit(policy); e.Type != "" {
				n.addEmitted(c, e)
			}
		}
	}
	n.destinations = slices.Sorted(maps.Keys(c.Destinations))
	for _, all := range []*[]string{&n.routingKeys, &n.types} {
		slices.Sort(*all)
		*all = slices.Compact(*all)
	}
	return n
}

// addEmitted is of a type that the relay itself writes.
func (n *named) addEmitted(c config, e emitConfig) {
	routingKey := orElse(e.AggregateType, e.Type)
	i := c.routeOf(routingKey)
	if i < 0 {
		return
	}
	if c.Routes[i].Match != routingKey {
		routingKey = other
	}
	n.add(routingKey, e.Type, c.Routes[i].To)
}

func (n *named) add(routingKey, kind, destination string) {
	if kind != other {
		n.types = append(n.types, kind)
	}
	n.lanes = append(n.lanes, lane{routingKey, kind, destination})
}

// labelsOf are those of the first so many names of each kind.
func labelsOf(n named, destinations, routingKeys, types int) *labels {
	l := &labels{
		destinations: setOf(n.destinations[:destinations]), routingKeys: setOf(n.routingKeys[:routingKeys]), types: setOf(n.types[:types]),
		pairs: map[pair]bool{}, lanes: map[lane]bool{},
	}
	if destinations < len(n.destinations) {
		l.destinations[other] = true
	}
	for _, at := range n.lanes {
		at = lane{bound(l.routingKeys, at.routingKey), bound(l.types, at.kind), bound(l.destinations, at.destination)}
		l.lanes[at] = true
		l.lanes[lane{at.routingKey, other, at.destination}] = true
		l.pairs[pair{at.kind, at.destination}] = true
	}
	for destination := range l.destinations {
		l.pairs[pair{other, destination}] = true
		l.lanes[lane{other, other, destination}] = true
	}
	return l
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// bound is a value that the label may have: this one, or other.
func bound(set map[string]bool, name string) string {
	if set[name] {
		return name
	}
	return other
}

// eachType calls f for each type that has a series of its own, and for other.
func (l *labels) eachType(f func(kind string)) {
	f(other)
	for kind := range l.types {
		f(kind)
	}
}

// class is an error class as a label.
func (l *labels) class(name string) string {
	if slices.Contains(errorClasses(), name) {
		return name
	}
	return other
}

// holds tells whether all that had a series of its own has it with these labels.
func (l *labels) holds(was *labels) bool {
	return subset(was.destinations, l.destinations) && subset(was.routingKeys, l.routingKeys) && subset(was.types, l.types) &&
		subset(was.pairs, l.pairs) && l.coarse == was.coarse
}

func subset[K comparable](of, set map[K]bool) bool {
	for name := range of {
		if !set[name] {
			return false
		}
	}
	return true
}

// pair are the labels of a message of this type on its way to a destination.
func (l *labels) pair(kind, destination string) pair {
	p := pair{kind, bound(l.destinations, destination)}
	if !l.pairs[p] {
		p.kind = other
	}
	return p
}

// timed are those of its histograms.
func (l *labels) timed(kind, destination string) pair {
	if l.coarse {
		kind = other
	}
	return l.pair(kind, destination)
}

// lane are the labels of a message that waits.
func (l *labels) lane(routingKey, kind, destination string) lane {
	at := lane{bound(l.routingKeys, routingKey), kind, bound(l.destinations, destination)}
	if l.lanes[at] {
		return at
	}
	at.kind = other
	if l.lanes[at] {
		return at
	}
	return lane{other, other, at.destination}
}
