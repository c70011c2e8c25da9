package relay

import (
	"slices"
	"strings"
)

// routing says where messages go and what they may cost. It is never changed: a reload puts another one in its place.
type routing struct {
	routes []Route
	hash   string // of the configuration that it is of
}

// routeOf returns the first route that matches, nil if none does.
func (r *routing) routeOf(key string) *Route {
	for i := range r.routes {
		if r.routes[i].matches(key) {
			return &r.routes[i]
		}
	}
	return nil
}

// leadsTo tells whether some route leads to a destination.
func (r *routing) leadsTo(destination string) bool {
	return slices.ContainsFunc(r.routes, func(route Route) bool { return route.To == destination })
}

// policy is that of a type: by its exact name, then by the longest prefix and "*", then the route's own.
func (r *Route) policy(typ string) Policy {
	if p, ok := r.Types[typ]; ok {
		return p
	}
	policy, longest := r.Policy, -1
	for pattern, p := range r.Types {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasPrefix(typ, prefix) && len(prefix) > longest {
			policy, longest = p, len(prefix)
		}
	}
	return policy
}

// matches tells whether a route takes a routing key.
func (r *Route) matches(key string) bool {
	if prefix, ok := strings.CutSuffix(r.Match, "*"); ok {
		return strings.HasPrefix(key, prefix)
	}
	return key == r.Match
}
