package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// What a finding can rest on.
const (
	byOperations    = "outbox_operation, the last 1,000"
	byConfiguration = "the configuration"
	byAttempts      = "outbox_attempt"
	byTable         = "outbox"
	byFailed        = "outbox, the last 10,000 that failed"
	byBoth          = "outbox and the configuration"
)

// duplicates says how repeats are made harmless, and what shows it.
func (l *loaded) duplicates(f reviewed) []finding {
	var list []finding
	drills := map[string]bool{}
	for _, o := range f.operations {
		d, ok := o.Drill()
		if !ok || drills[d.Destination] {
			continue
		}
		drills[d.Destination] = true
		list = append(list, known(byOperations, "The last drill of destination %s, %s by %s: %s.", d.Destination,
			o.RequestedAt.Format(time.RFC3339), o.Actor, drillWords(d)))
	}
	for _, name := range slices.Sorted(maps.Keys(l.config.Destinations)) {
		d := l.config.Destinations[name]
		switch memory := d.dedupe(); {
		case d.Kafka != nil:
			list = append(list, notKnown(byConfiguration, "whether the consumers of destination %s drop repeats: each record has its key in the header id, and a broker tells no more.", name))
			continue
		case d.Stdout != nil:
			continue
		case memory.Never:
			list = append(list, known(byConfiguration, "Destination %s remembers no key (dedupe: never): what may have taken effect is not sent again.", name))
			continue
		default:
			list = append(list, known(byConfiguration, "Destination %s is said to remember a key for %s: what may have taken effect is sent again within that time only, under the same key.",
				name, short(memory.Window)))
		}
		if !drills[name] {
			list = append(list, notKnown(byOperations, "whether destination %s does: no drill of it is recorded; see outboxd drill --help.", name))
		}
	}
	sends := map[string]int{}
	for _, o := range f.outcomes {
		sends[o.Outcome] += o.Sends
	}
	if len(f.outcomes) == 0 {
		return append(list, known(lately(f), "No send is recorded that went out and was not done."))
	}
	return append(list, known(lately(f), "Repeats that had to be safe: %s ended without a known outcome, %s lapsed with their relay's lease.",
		counted(sends[string(relay.KindUnknown)], "send"), counted(sends[string(relay.WhatLapse)], "send")))
}

// lately says over which sends a finding counts.
func lately(f reviewed) string {
	if len(f.outcomes) == 0 {
		return byAttempts + ", which is empty"
	}
	since := slices.MinFunc(f.outcomes, func(a, b dialect.SendOutcome) int { return a.Since.Compare(b.Since.Time) }).Since
	words := byAttempts + ", since " + since.Format(time.RFC3339)
	if f.more {
		words += ", its last " + fmt.Sprint(dialect.CountBound)
	}
	return words
}

// classification counts what sends came to.
func (l *loaded) classification(f reviewed) []finding {
	var list []finding
	for _, o := range f.outcomes {
		what := o.Outcome
		if class := value(o.ErrorClass); class != "" {
			what += ", " + class
		}
		list = append(list, known(lately(f), "%s: %s.", what, counted(o.Sends, "send")))
	}
	if len(list) == 0 {
		list = append(list, notKnown(lately(f), "how failures are classified here: none is recorded."))
	}
	for _, name := range slices.Sorted(maps.Keys(l.config.Destinations)) {
		d := l.config.Destinations[name]
		own := map[string]outcomeConfig{}
		switch {
		case d.Webhook != nil:
			own = d.Webhook.Outcomes
		case d.Program != nil:
			own = d.Program.Outcomes
		}
		for _, answer := range slices.Sorted(maps.Keys(own)) {
			list = append(list, known(byConfiguration, "Destination %s says otherwise of %s: %v.", name, answer, own[answer]))
		}
	}
	return append(list, known("docs/outcomes.md", "All else is classified by code alone, as the documentation lists."))
}

// bounds tells what a message may cost.
func (l *loaded) bounds() []finding {
	var list []finding
	for i := range l.config.Routes {
		r := &l.config.Routes[i]
		for _, key := range r.policyKeys() {
			p := l.policy(r, key)
			what := "Route " + r.Match
			if key != "" {
				what += ", type " + key
			}
			list = append(list, known(byConfiguration,
				"%s: at most %d charged sends of %s, between them %s doubling to %s of which half to all by chance: all tries lie within %s to %s, as long as the destination answers.",
				what, p.Budget, short(p.Timeout), short(p.Base), short(p.Cap), short((backoffs(p)/2).Round(time.Second)), short(longestTries(p).Round(time.Second))))
		}
	}
	return append(list, known("relay/DESIGN.md", "More than 3 lapses in a row end a message; what cannot be sent at all, or is paused, is not charged and waits."))
}

// failures tells what ended without being done, and what people did about it.
func failures(f reviewed) []finding {
	var list []finding
	for _, s := range f.status.Failed {
		list = append(list, known(byFailed, "Unresolved, %s: %s of type %s under routing key %s, the last one %s ago.",
			s.Reason, messages(s.Messages, s.More), s.Type, s.RoutingKey, s.Latest))
	}
	for _, k := range f.kinds.Kinds {
		if k.State == string(relay.Failed) && !k.Resolved {
			list = append(list, known(byFailed, "The oldest unresolved one of type %s, version %d, is %s, written %s ago.",
				k.Type, k.SchemaVersion, k.ID, dialect.Age(f.now.Sub(k.CreatedAt.Time))))
		}
	}
	if len(list) == 0 {
		list = append(list, known(byFailed, "No failed message waits for a person."))
	}
	return append(list, byWhom(f.operations)...)
}

// byWhom tells who resolved, sent again, corrected or cancelled how many.
func byWhom(operations []dialect.Operation) (list []finding) {
	type deed struct{ op, actor string }
	done, times, last := map[deed]int64{}, map[deed]int{}, map[deed]time.Time{}
	for _, o := range operations {
		d := deed{o.Op, o.Actor}
		switch relay.Op(o.Op) {
		case relay.OpResolve, relay.OpReplay, relay.OpCorrect, relay.OpCancel:
		default:
			continue
		}
		if o.DryRun || o.Affected == nil || o.AppliedAt == nil {
			continue
		}
		done[d] += *o.Affected
		times[d]++
		if o.AppliedAt.After(last[d]) {
			last[d] = o.AppliedAt.Time
		}
	}
	deeds := slices.SortedFunc(maps.Keys(times), func(a, b deed) int { return cmp.Or(strings.Compare(a.op, b.op), strings.Compare(a.actor, b.actor)) })
	for _, d := range deeds {
		list = append(list, known(byOperations, "%s by %s: %s by %s, the last at %s.", d.op, d.actor, messages(int(done[d]), false), counted(times[d], "operation"), last[d].Format(time.RFC3339)))
	}
	if len(list) == 0 {
		list = append(list, known(byOperations, "Nobody resolved, replayed, corrected or cancelled anything."))
	}
	return list
}

// versions tells whether the configuration fits what is there.
func (l *loaded) versions(f reviewed) []finding {
	c := l.judge(f.kinds)
	list := []finding{known(byBoth, "%d of %d kinds of message that are there are accepted.", len(c.Kinds)-c.refused(), len(c.Kinds))}
	for _, k := range c.Kinds {
		if !k.Accepted {
			list = append(list, known(byBoth, "Not accepted: routing key %s, type %s, version %d, %s: %s, the oldest %s ago; %s.",
				k.RoutingKey, k.Type, k.SchemaVersion, k.State, messages(k.Messages, k.More), dialect.Age(f.now.Sub(k.CreatedAt.Time)), k.Why))
		}
	}
	for _, h := range c.Horizons {
		list = append(list, notKnown(byTable, "what lies beyond: %s.", reach(h)))
	}
	return list
}

// whoSends tells which relays are alive, and whether they have this configuration.
func (l *loaded) whoSends(f reviewed) []finding {
	alive := aliveOf(f.status.Relays)
	var list []finding
	for _, name := range slices.Sorted(maps.Keys(alive)) {
		r := alive[name]
		same := either(r.ConfigHash == l.config.hash(), "this configuration", "ANOTHER configuration, "+r.ConfigHash)
		list = append(list, known("outbox_relay", "Relay %s, version %s, is alive with %s.", name, r.Version, same))
	}
	if len(list) == 0 {
		list = append(list, known("outbox_relay", "No relay is alive."))
	}
	if f.instance == "" {
		return append(list, known("outbox_control", "The outbox belongs to no instance: a copy of it would be worked on by any relay that finds it."))
	}
	return append(list, known("outbox_control", "The outbox belongs to instance %s: relays of another one, or of none, send nothing beside it.", f.instance))
}
