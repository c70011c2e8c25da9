package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

func routePath(i int) string { return fmt.Sprintf("routes[%d]", i) }

// policyPath is where a policy of a route stands: key is one of its types, or "" for the route itself.
func policyPath(route int, key string) string {
	if key == "" {
		return routePath(route)
	}
	return join(routePath(route)+".types", key)
}

// policyKeys are the keys under types, behind "" for the route's own policy.
func (r *routeConfig) policyKeys() []string {
	return append([]string{""}, slices.Sorted(maps.Keys(r.Types))...)
}

// policyKey is the key under types whose policy a type has, as package relay decides it: the exact one, or the longest
// start; "" where the route's own counts.
func (r *routeConfig) policyKey(kind string) string {
	if _, exact := r.Types[kind]; exact {
		return kind
	}
	longest := ""
	for key := range r.Types {
		if strings.HasSuffix(key, "*") && matches(key, kind) && len(key) > len(longest) {
			longest = key
		}
	}
	return longest
}

// routeOf is the number of the route that takes a routing key, or -1.
func (c *config) routeOf(key string) int {
	return slices.IndexFunc(c.Routes, func(r routeConfig) bool { return matches(r.Match, key) })
}

func (l *loaded) checkRoute(path string, r *routeConfig) {
	l.checkMatch(path, r.Match)
	if _, there := l.config.Destinations[r.To]; !there {
		words := "names a destination that is not under destinations"
		if r.To == "" {
			words = "wants the name of a destination"
		} else if near := nearest(r.To, slices.Collect(maps.Keys(l.config.Destinations))); near != "" {
			words += "; did you mean " + near + "?"
		}
		l.fail(path+".to", "%s", words)
	}
	if r.Ordered {
		l.fail(path+".ordered", "order per key comes in a later release; take ordered out, or say false")
	}
	l.checkStated(path, r)
	l.checkPolicy(path, r.Policy)
	for _, name := range slices.Sorted(maps.Keys(r.Types)) {
		here := join(path+".types", name)
		if blank := strings.TrimSpace(name) != name || name == ""; blank || strings.Contains(strings.TrimSuffix(name, "*"), "*") {
			l.fail(here, `wants a type without blanks around it, or the start of one and "*"`)
		}
		l.checkPolicy(here, r.Types[name])
	}
	for _, key := range r.policyKeys() {
		l.warnPolicy(path, r, key)
	}
}

// checkStated wants it said that messages of a destination without order may overtake each other.
func (l *loaded) checkStated(path string, r *routeConfig) {
	kind := ""
	switch d := l.config.Destinations[r.To]; {
	case d.Webhook != nil:
		kind = "webhook"
	case d.Program != nil:
		kind = "program"
	}
	if kind != "" && !l.set(path+".ordered") {
		l.fail(path+".ordered", "say false: messages of one aggregateid may overtake each other on their way to a %s", kind)
	}
}

func (l *loaded) checkMatch(path, match string) {
	switch {
	case match == "":
		l.fail(path+".match", `wants a routing key, the start of one and "*", or "*" alone`)
	case strings.Contains(strings.TrimSuffix(match, "*"), "*"):
		l.fail(path+".match", `"*" can stand at the end only`)
	}
	for i, earlier := range l.config.Routes {
		here := routePath(i)
		if here == path {
			return
		}
		if earlier.Match != "" && matches(earlier.Match, match) {
			l.fail(path+".match", "%s before it takes all of these messages; put this route first, or take it out", here)
			return
		}
	}
}

// matches tells whether a pattern fits a routing key or a type, or all that another pattern fits.
func matches(pattern, key string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	if open {
		return strings.HasPrefix(key, prefix)
	}
	return pattern == key
}

func (l *loaded) checkPolicy(path string, p policyConfig) {
	l.atLeastOne(path+".budget", p.Budget)
	l.checkTimeout(path+".timeout", p.Timeout)
	l.between(path+".base", p.Base, time.Millisecond, 24*time.Hour)
	l.between(path+".cap", p.Cap, time.Millisecond, 7*24*time.Hour)
	for i, version := range p.Versions {
		l.atLeastOne(fmt.Sprintf("%s.versions[%d]", path, i), version)
	}
}

// checkTimeout also warns where a send may go on for longer than a stop waits: it would be cut off and count as a lapse.
func (l *loaded) checkTimeout(path string, timeout time.Duration) {
	l.between(path, timeout, 10*time.Millisecond, time.Hour)
	if l.set(path) && timeout > l.config.Relay.StopTimeout {
		l.warn(path, "longer than relay.stop_timeout: a stop can cut a send off")
	}
}
