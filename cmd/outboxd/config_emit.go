package main

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// emitter is a policy that may write messages: a route, and a key of its types or "" for the route's own.
type emitter struct {
	route int
	key   string
}

// emit is what a policy of a route writes of a final message: its own, or the route's.
func (r *routeConfig) emit(key string) emitConfig {
	for _, e := range []*emitConfig{r.Types[key].Emit, r.Policy.Emit} {
		if e != nil {
			return *e
		}
	}
	return emitConfig{}
}

// checkEmits finds emitted messages that would come back to where they are from, and warns of those that would wait.
func (l *loaded) checkEmits() {
	var all []emitter
	for i := range l.config.Routes {
		for _, key := range l.config.Routes[i].policyKeys() {
			all = append(all, emitter{i, key})
			l.checkEmit(emitter{i, key})
		}
	}
	for i, first := range all {
		types, round := l.emittedAfter(first)
		if len(round) > 1 && !slices.ContainsFunc(all[:i], func(e emitter) bool { return slices.Contains(round, e) }) {
			l.fail(policyPath(first.route, first.key)+".emit", "closes a circle, which would never end: %s; take one of them out",
				strings.Join(append(types, types[0]), " -> "))
		}
	}
}

// checkEmit looks at what a policy itself says.
func (l *loaded) checkEmit(from emitter) {
	r := &l.config.Routes[from.route]
	own := r.Policy.Emit
	if from.key != "" {
		own = r.Types[from.key].Emit
	}
	path := policyPath(from.route, from.key) + ".emit"
	if own == nil || l.decoder.broken[path] || *own == (emitConfig{}) && from.key != "" {
		return
	}
	if !tableText(own.Type) || own.AggregateType != "" && !tableText(own.AggregateType) {
		l.fail(path, "wants the type of the message to write, without blanks around it and of 255 characters at most")
		return
	}
	switch to, there := l.takes(*own); {
	case !there:
		l.warn(path, "no route takes "+own.Type+": it would wait; add one to routes")
	case l.config.Routes[to.route].To == r.To:
		l.fail(path, "%s would go to %s, the destination that it tells of; add a route before routes[%d] that takes it elsewhere",
			own.Type, r.To, to.route)
	default:
		target := &l.config.Routes[to.route]
		if versions := l.policy(target, to.key).Versions; len(versions) > 0 && !slices.Contains(versions, 1) {
			l.warn(path, own.Type+" has schema_version 1, which "+policyPath(to.route, to.key)+" does not accept: it would wait")
		}
	}
}

// takes finds the policy of an emitted message.
func (l *loaded) takes(e emitConfig) (emitter, bool) {
	i := l.config.routeOf(orElse(e.AggregateType, e.Type))
	if i < 0 {
		return emitter{}, false
	}
	return emitter{i, l.config.Routes[i].policyKey(e.Type)}, true
}

// emittedAfter follows the messages that a policy sets off. Where they come back to it, types are theirs in turn, and round
// are the policies that they pass.
func (l *loaded) emittedAfter(first emitter) (types []string, round []emitter) {
	at := first
	for {
		e := l.config.Routes[at.route].emit(at.key)
		next, there := l.takes(e)
		if e.Type == "" || !there || slices.Contains(round, at) {
			return nil, nil
		}
		types, round = append(types, e.Type), append(round, at)
		if next == first {
			return types, round
		}
		at = next
	}
}

// tableText tells whether the column type, or aggregatetype, takes a text on every database.
func tableText(text string) bool {
	return text != "" && strings.TrimSpace(text) == text && utf8.ValidString(text) && utf8.RuneCountInString(text) <= 255 &&
		!strings.ContainsFunc(text, unicode.IsControl)
}
