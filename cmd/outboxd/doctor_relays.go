package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/outboxd/outboxd/dialect"
)

// foundRelays judges which relays are there, and what waits for none of them. It watches them for a while, where there are
// any: that two have one name shows only in how often that one tells that it is alive.
func foundRelays(ctx context.Context, db inspector, c config) []dialect.Finding {
	status, err := db.Status(ctx)
	if err != nil {
		return []dialect.Finding{dialect.FoundError("relays", err)}
	}
	alive := aliveOf(status.Relays)
	findings := append([]dialect.Finding{foundInstance(status.Instance, c)}, foundAlive(status.Relays, c)...)
	if len(alive) > 0 {
		seen, err := watchBeats(ctx, db)
		if err != nil {
			return append(findings, dialect.FoundError("relay names", err))
		}
		findings = append(findings, foundTwins(seen))
	}
	return append(findings, foundUnrouted(status.Waiting, c.Routes)...)
}

// foundInstance tells whether relays with this configuration may send what is in the outbox.
func foundInstance(of string, c config) dialect.Finding {
	const check = "instance"
	switch {
	case of == "" && c.Instance == "":
		return dialect.Fine(check, "the outbox belongs to none, so nothing keeps a relay from sending what a copy of it holds; see docs/keeping.md")
	case of == "":
		return dialect.Fine(check, "the outbox belongs to none, and the first relay of %s gives it that name", c.Instance)
	case of == c.Instance, len(c.Destinations) == 0:
		return dialect.Fine(check, "the outbox belongs to %s", of)
	}
	return dialect.Wrong(check, "if this is no copy, say instance: "+of+" in the configuration; else outboxd instance set, when it may send",
		"the outbox belongs to %s, and this configuration to %s: its relays send nothing", of, orElse(c.Instance, "none"))
}

// foundAlive tells of the relays that are alive, and of those that are not like the others or like this program and its
// configuration.
func foundAlive(relays []dialect.RelayStatus, c config) []dialect.Finding {
	const check = "relays"
	alive := aliveOf(relays)
	if len(alive) == 0 {
		return []dialect.Finding{dialect.Warn(check, "start one with outboxd run", "%s", noRelay(relays))}
	}
	names := slices.Sorted(maps.Keys(alive))
	findings := []dialect.Finding{dialect.Fine(check, "alive: %s", strings.Join(names, ", "))}
	if groups := groupsOf(alive, func(r dialect.RelayStatus) string { return r.ConfigHash }); len(groups) > 1 {
		findings = append(findings, dialect.Warn(check, "give all of them the same configuration",
			"they have different destinations or routes: %s", strings.Join(groups, " against ")))
	} else if len(c.Destinations) > 0 && alive[names[0]].ConfigHash != c.hash() {
		findings = append(findings, dialect.Warn(check, "reload or restart them with this configuration, or name theirs with -c",
			"they run with other destinations or routes than this configuration has"))
	}
	if groups := groupsOf(alive, func(r dialect.RelayStatus) string { return r.Version }); len(groups) > 1 {
		findings = append(findings, dialect.Warn(check, "finish the upgrade, or go back", "they are of different versions: %s", strings.Join(groups, " against ")))
	} else if theirs, ours := alive[names[0]].Version, builtFrom().Version; theirs != ours {
		findings = append(findings, dialect.Fine(check, "they are of version %s, and this program is of version %s", theirs, ours))
	}
	return findings
}

// groupsOf lists the names of the relays that have the same value, sorted.
func groupsOf(relays map[string]dialect.RelayStatus, value func(dialect.RelayStatus) string) (groups []string) {
	byValue := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(relays)) {
		byValue[value(relays[name])] = append(byValue[value(relays[name])], name)
	}
	for _, names := range byValue {
		groups = append(groups, strings.Join(names, ", "))
	}
	slices.Sort(groups)
	return groups
}

// A relay tells that it is alive every two seconds. Of two with one name, one tells within a second of the other.
const (
	watchFor   = 5 * time.Second
	watchEvery = 200 * time.Millisecond
	beatApart  = 1500 * time.Millisecond
)

// beat is when a relay was last seen: between two moments, as far apart as the look took. They are by this host's clock and
// only compared with each other.
type beat struct{ from, to time.Time }

// watchBeats notes when each relay was last seen, again and again.
func watchBeats(ctx context.Context, db inspector) (map[string][]beat, error) {
	seen := map[string][]beat{}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for end := time.Now().Add(watchFor); time.Now().Before(end); {
		asked := time.Now()
		status, err := db.Relays(ctx)
		if err != nil {
			return nil, err
		}
		answered := time.Now()
		for _, r := range status {
			if ago := time.Duration(r.SeenFor); ago < aliveFor {
				seen[r.Name] = append(seen[r.Name], beat{asked.Add(-ago), answered.Add(-ago)})
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return seen, nil
}

// foundTwins tells of names under which more than one relay runs.
func foundTwins(seen map[string][]beat) dialect.Finding {
	const check = "relay names"
	var doubled []string
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		if twice(seen[name]) {
			doubled = append(doubled, name)
		}
	}
	if doubled == nil {
		return dialect.Fine(check, "each is used by one relay")
	}
	return dialect.Warn(check, "give each relay.name once, or leave it out", "more than one relay runs as %s", strings.Join(doubled, ", "))
}

// twice tells that two beats came too soon after each other to be those of one relay.
func twice(seen []beat) bool {
	const clocks = 10 * time.Millisecond // so much this host's clock may gain on the database's between two looks
	for i := 1; i < len(seen); i++ {
		before, after := seen[i-1], seen[i]
		if after.from.Sub(before.to) > clocks && after.to.Sub(before.from) < beatApart {
			return true
		}
	}
	return false
}

// foundUnrouted tells of messages that no relay with this configuration would take.
func foundUnrouted(waiting []dialect.Waits, routes []routeConfig) []dialect.Finding {
	const check = "routes"
	if len(routes) == 0 {
		return []dialect.Finding{dialect.Fine(check, "this configuration has none, so it says nothing about what waits")}
	}
	var findings []dialect.Finding
	for _, w := range waiting {
		if w.Why != dialect.InFlight && destinationOf(routes, w.RoutingKey) == "" {
			findings = append(findings, dialect.Warn(check, "add a route with that match, or correct what the application writes",
				"%s of routing key %s have no route, the oldest for %s", messages(w.Messages, w.More), w.RoutingKey, w.Oldest))
		}
	}
	if findings == nil {
		return []dialect.Finding{dialect.Fine(check, "every routing key that waits has one")}
	}
	return findings
}
