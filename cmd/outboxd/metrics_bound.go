package main

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

const (
	// maxSeries is how many series an outbox may have, with those of the process, of which there are fewer than others.
	maxSeries    = 2000
	seriesOfRest = 240 // of the process, and those without a label that the configuration names
	// classicSeries and plainSeries are those of one histogram: its buckets and the one of all, sum and count.
	classicSeries = 12 + 3
	plainSeries   = 3
)

// series is how many series there can be at most with these labels. docs/metrics.md lists them.
func (l *labels) series() int {
	histogram := classicSeries
	if l.plain {
		histogram = plainSeries
	}
	timed := len(l.pairs)
	if l.coarse {
		timed = len(l.destinations)
	}
	return seriesOfRest + len(l.lanes) +
		len(l.destinations)*(len(errorClasses())+len(states())+4) + // lost leases, lapses, in flight and its limit
		(len(l.routingKeys)+1)*2 + // claimed, truncated
		(len(l.types)+1)*(2+len(reasons())+len(causes())) + // messages by state, unresolved by reason, turned back
		len(l.pairs)*(len(outcomes())+len(reasons())) +
		timed*(len(outcomes())+1)*histogram
}

// fit finds the labels that tell most without more series than there may be. What histograms are like is said by plain, where
// it cannot be changed any more.
func fit(n named, plain ...bool) *labels {
	if len(plain) == 0 {
		plain = []bool{false, true}
	}
	destinations, routingKeys, types := len(n.destinations), len(n.routingKeys), len(n.types)
	try := func(coarse, plain bool) (*labels, bool) {
		l := labelsOf(n, destinations, routingKeys, types)
		l.coarse, l.plain = coarse, plain
		return l, l.series() <= maxSeries
	}
	for _, plain := range plain {
		for _, coarse := range []bool{false, true} {
			if l, ok := try(coarse, plain); ok {
				return l
			}
		}
	}
	last := plain[len(plain)-1]
	for _, names := range []*int{&types, &routingKeys, &destinations} {
		all := *names
		*names = all - sort.Search(all, func(fewer int) bool {
			*names = all - fewer
			_, ok := try(true, last)
			return ok
		})
		if l, ok := try(true, last); ok {
			return l
		}
	}
	l, _ := try(true, last) // All is other.
	return l
}

// folded says in words what has no series of its own; "" where all has.
func (l *labels) folded(n named) string {
	var words []string
	add := func(yes bool, format string, args ...any) {
		if yes {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(l.coarse, "durations are told by destination alone")
	add(l.plain, "histograms have no classic buckets")
	count := func(all []string, have map[string]bool, what string) {
		fewer := len(slices.DeleteFunc(slices.Clone(all), func(name string) bool { return have[name] }))
		add(fewer > 0, "%d of %d %s have the label other", fewer, len(all), what)
	}
	count(n.types, l.types, "types")
	count(n.routingKeys, l.routingKeys, "routing keys")
	count(n.destinations, l.destinations, "destinations")
	return strings.Join(words, ", ")
}
