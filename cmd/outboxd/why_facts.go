package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// facts are all that explain looks at.
type facts struct {
	now      time.Time // by the database's clock
	message  dialect.Message
	attempts []dialect.Attempt
	lease    *dialect.Lease // that its lease_id names; nil: there is none
	instance string         // that the outbox belongs to; "": none
	relays   []dialect.RelayStatus
	breakers []dialect.BreakerStatus
	pauses   []dialect.PauseStatus
	plan     *plan // nil: no configuration, or one without routes
}

// plan is what the configuration says of a message.
type plan struct {
	destination string // empty: no route takes its routing key
	policy      relay.Policy
	dedupe      relay.Dedupe
	cap         time.Duration // of the pause between two probes
	remembers   bool          // its receiver gives failures again under their key
}

// planFor finds the route of a message, and its policy there.
func (l *loaded) planFor(m dialect.Message) *plan {
	if len(l.config.Routes) == 0 {
		return nil
	}
	i := l.config.routeOf(m.RoutingKey)
	if i < 0 {
		return &plan{}
	}
	r := &l.config.Routes[i]
	d := l.config.Destinations[r.To]
	found := &plan{
		destination: r.To, policy: l.policy(r, r.policyKey(m.Type)),
		cap: orElse(d.Breaker.Cap, 30*time.Second), // relay/DESIGN.md, Defaults
	}
	found.dedupe = d.dedupe()
	found.remembers = d.Webhook != nil && d.Webhook.RemembersFailures
	return found
}

// when is a time for a person who was woken: in UTC, and how far away.
func (f facts) when(t time.Time) string {
	text := t.UTC().Format("2006-01-02T15:04:05Z")
	if d := t.Sub(f.now); d > 0 {
		return text + ", in " + span(d)
	}
	return text + ", " + span(f.now.Sub(t)) + " ago"
}

// last is what was recorded last of the message's present life; nil: nothing.
func (f facts) last() *dialect.Attempt {
	if n := len(f.attempts); n > 0 && f.attempts[n-1].Life == f.message.Replays {
		return &f.attempts[n-1]
	}
	return nil
}

// charged tells whether the last recorded send of this life counts as an attempt.
func (f facts) charged() bool {
	before, n := 0, len(f.attempts)
	if n > 1 && f.attempts[n-2].Life == f.message.Replays {
		before = f.attempts[n-2].Attempt
	}
	return f.attempts[n-1].Attempt > before
}

// wireKey is the idempotency key of the present life.
func (f facts) wireKey() string { return orElse(value(f.message.SendID), f.message.ID) }

// class is the error class, empty where there is none.
func (f facts) class() string { return value(f.message.ErrorClass) }

// lastError is the class and the first line of the text of the last send that was not done.
func (f facts) lastError() string { return joined(f.class(), firstLine(value(f.message.LastError))) }

// routed tells that the configuration has a route for the message.
func (f facts) routed() bool { return f.plan != nil && f.plan.destination != "" }

// destination is the name of the message's; empty: nobody knows here, or there is none. Relays that serve only one prove
// nothing: they may have no route for it.
func (f facts) destination() string {
	if f.plan == nil {
		return ""
	}
	return f.plan.destination
}

// askConfiguration says what is not known without a route, and who knows it.
func (f facts) askConfiguration() string {
	if f.plan != nil {
		return "no route of this configuration takes routing key " + f.message.RoutingKey + ", so nobody knows here how long its destination remembers keys"
	}
	return "which destination takes it, and for how long that remembers keys, only the configuration says: add -c FILE"
}

func (f facts) alive() map[string]dialect.RelayStatus { return aliveOf(f.relays) }

// servers are the relays alive that serve a destination, or all where it is empty, sorted.
func (f facts) servers(destination string) (names []string) {
	for name, r := range f.alive() {
		if destination == "" || slices.Contains(r.Destinations, destination) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// dedupe is the memory of the message's destination; its zero value where there is no configuration.
func (f facts) dedupe() relay.Dedupe {
	if f.plan == nil {
		return relay.Dedupe{}
	}
	return f.plan.dedupe
}

// attempt names a send by its number, beside the budget where that is known.
func (f facts) attempt(n int) string {
	if !f.routed() {
		return fmt.Sprintf("attempt %d", n)
	}
	return fmt.Sprintf("attempt %d of %d", n, f.plan.policy.Budget)
}
