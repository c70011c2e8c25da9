package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/outboxd/outboxd/dialect"
)

const (
	aliveFor = 30 * time.Second // since a relay was last seen; it tells every 5 s
	slowFor  = time.Minute      // since the oldest message of a routing key is due and nobody takes it
)

// problemsOf says what is wrong, for a person who was woken by it: what stops everything first, what waits for somebody
// last. routes may be empty: then nobody knows here which routing keys have one.
func problemsOf(s dialect.Status, routes []routeConfig) []string {
	list := []string{} // not nil: a list in JSON
	alive := aliveOf(s.Relays)
	if len(alive) == 0 {
		list = append(list, noRelay(s.Relays))
	}
	list = append(list, foreign(s.Instance, alive)...)
	list = append(list, disagreements(alive)...)
	open := map[string]bool{} // by destination/routing key; no destination is any of them, no key all of its keys
	for _, b := range s.Breakers {
		if _, there := alive[b.Relay]; there && (b.State == "open" || b.State == "throttled") {
			destination, key, _ := strings.Cut(b.Name, "/")
			open["/"+key], open[destination+"/"+key] = true, true
			list = append(list, held(b, destination, key))
		}
	}
	paused := map[string]bool{} // by target, such as destination:billing; without a name any of its kind
	for _, p := range s.Pauses {
		kind, key, _ := strings.Cut(p.Target, ":")
		paused[kind+":"], paused[kind+":"+key] = true, true
		list = append(list, pausedBy(p))
	}
	for _, w := range s.Waiting {
		to := destinationOf(routes, w.RoutingKey)
		explained := open[to+"/"] || open[to+"/"+w.RoutingKey] ||
			paused["everything:"] || paused["destination:"+to] || paused["routing_key:"+w.RoutingKey]
		if words := stuck(w, routes, len(alive) > 0 && !explained); words != "" {
			list = append(list, words)
		}
	}
	return append(list, unresolved(s.Failed)...)
}

// destinationOf is where a routing key's messages go, "" where nobody knows that here.
func destinationOf(routes []routeConfig, key string) string {
	i := slices.IndexFunc(routes, func(r routeConfig) bool { return matches(r.Match, key) })
	if i < 0 {
		return ""
	}
	return routes[i].To
}

// aliveOf returns the relays that were seen lately, by name.
func aliveOf(relays []dialect.RelayStatus) map[string]dialect.RelayStatus {
	alive := map[string]dialect.RelayStatus{}
	for _, r := range relays {
		if time.Duration(r.SeenFor) < aliveFor {
			alive[r.Name] = r
		}
	}
	return alive
}

func noRelay(relays []dialect.RelayStatus) string {
	words := "no relay is alive: nothing is sent until one is started with outboxd run"
	if len(relays) == 0 {
		return words
	}
	last := slices.MinFunc(relays, func(a, b dialect.RelayStatus) int { return int(a.SeenFor - b.SeenFor) })
	return fmt.Sprintf("%s; the last was %s on host %s, seen %s ago", words, last.Name, last.Host, last.SeenFor)
}

// foreign tells of relays that send nothing, since the outbox belongs to another instance than theirs.
func foreign(instance string, alive map[string]dialect.RelayStatus) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(alive)) {
		own := alive[name].Instance
		if own == instance || instance == "" {
			continue
		}
		of := "is of the instance " + own
		if own == "" {
			of = "names no instance"
		}
		list = append(list, fmt.Sprintf("relay %s %s and sends nothing: the outbox belongs to %s; give the relay that name, or see outboxd instance --help",
			name, of, instance))
	}
	return list
}

// disagreements tells of relays that send differently.
func disagreements(alive map[string]dialect.RelayStatus) []string {
	groups := groupsOf(alive, func(r dialect.RelayStatus) string { return r.ConfigHash })
	if len(groups) < 2 {
		return nil
	}
	return []string{"relays have different destinations or routes: " + strings.Join(groups, " against ") +
		"; give all of them the same configuration"}
}

// held tells of a destination that a relay sends nothing to for now.
func held(b dialect.BreakerStatus, destination, key string) string {
	what := "destination " + destination
	if key != "" {
		what = "routing key " + key + " at destination " + destination
	}
	if b.State == "throttled" {
		return fmt.Sprintf("%s is left alone by relay %s, because it asked for that: %s", what, b.Relay, b.LastError)
	}
	words := fmt.Sprintf("%s is open at relay %s: after %d failures in a row only a probe goes out now and then", what, b.Relay, b.Failures)
	if b.LastError != "" {
		words += "; the last: " + b.LastError
	}
	switch class, _, _ := strings.Cut(b.LastError, ":"); class {
	case "auth", "tls", "dns", "refused":
		words += "; try outboxd dest test " + shellWord(destination)
	}
	return words
}

// pausedBy tells of a pause, and of how to end it.
func pausedBy(p dialect.PauseStatus) string {
	words := p.Target + " is paused by " + p.Actor
	if p.Note != "" {
		words += " (" + p.Note + ")"
	}
	if p.Left == nil {
		return words + " until outboxd resume"
	}
	return words + " for another " + p.Left.String() + ", or until outboxd resume"
}

// stuck tells of messages that wait for somebody. watched says that relays are alive and that neither an open breaker nor a
// pause explains messages that are due.
func stuck(w dialect.Waits, routes []routeConfig, watched bool) string {
	one := w.Messages == 1 && !w.More
	verb := func(ofOne, ofMany string) string {
		return messages(w.Messages, w.More) + " of routing key " + w.RoutingKey + " " + either(one, ofOne, ofMany)
	}
	unrouted := len(routes) > 0 && destinationOf(routes, w.RoutingKey) == ""
	switch {
	case unrouted && w.Why != dialect.InFlight:
		return verb("has", "have") + " no route: add one with that match to routes, and reload the relays"
	case w.Why == dialect.NoPolicy:
		return verb("is turned back: no policy accepts its", "are turned back: no policy accepts their") + " schema version; add it to versions and reload the relays, which then send what waits"
	case w.Why == dialect.Paused:
		return verb("is", "are") + " paused"
	case w.Why == dialect.Retrying:
		return fmt.Sprintf("%s next try: outboxd errors --routing-key %s shows why, outboxd why ID of one",
			verb("could not be sent and waits for its", "could not be sent and wait for their"), shellWord(w.RoutingKey))
	case w.Why == dialect.Due && watched && time.Duration(w.Oldest) > slowFor:
		return fmt.Sprintf("%s due, the oldest for %s: no relay has a route for %s, or the relays are too slow",
			verb("is", "are"), w.Oldest, either(one, "it", "them"))
	}
	return ""
}

// unresolved tells in one line how many failed messages wait for a person, and why they failed.
func unresolved(failed []dialect.FailedCount) []string {
	total, more, reasons := 0, false, map[string]int{}
	for _, f := range failed {
		total += f.Messages
		more = more || f.More
		reasons[f.Reason] += f.Messages
	}
	if total == 0 {
		return nil
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		parts = append(parts, fmt.Sprintf("%d %s", reasons[reason], reason))
	}
	return []string{messages(total, more) + " failed and " + either(total == 1 && !more, "waits", "wait") + " for a person (" + strings.Join(parts, ", ") +
		"): see outboxd errors, and outboxd list --unresolved"}
}
