package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// explain says why a message is where it is, and what comes next. It is pure.
func explain(f facts) answer {
	a := answer{ID: f.message.ID, State: f.message.State}
	switch relay.State(f.message.State) {
	case relay.Pending:
		a.Why = f.whyPending()
		a.Next, a.Commands = f.nextOfPending()
	case relay.InFlight:
		a.Why, a.Next = f.whyInFlight(), f.nextInFlight()
	case relay.Finished:
		a.Why, a.Next = f.whyDone(), "nothing: it is not sent again unless somebody replays it"
	case relay.Failed:
		a.Why = f.whyFailed()
		a.Next, a.Commands = f.mend()
	}
	a.Why, a.Next = harmless(a.Why), harmless(a.Next)
	if a.Commands == nil {
		a.Commands = []string{} // a list in JSON
	}
	return a
}

// whyPending tells what happened to the message last.
func (f facts) whyPending() string {
	m, last, words := f.message, f.last(), ""
	switch {
	case m.LeaseID == 0 && f.due():
		words = "it has been due since " + f.when(m.DueAt.Time) + ", and no relay took it yet"
	case m.LeaseID == 0:
		words = "the application delayed it until " + f.when(m.DueAt.Time)
	case m.Replays > 0 && last == nil && m.Attempts == 0 && m.Lapses == 0 && f.due():
		words = "it was replayed, and has been due since " + f.when(m.DueAt.Time)
	case f.lapsed():
		words = counted(m.Lapses, "lease") + " ended without an outcome of it"
		if last != nil {
			words += ", the last of relay " + last.Relay + ", which took it at " + f.when(last.StartedAt.Time)
		}
	case f.class() == relay.ClassNoPolicy:
		words = fmt.Sprintf("a relay turned it back, because no policy accepted version %d of type %s", m.SchemaVersion, m.Type)
	case f.class() == relay.ClassPaused:
		words = "a relay turned it back, because its type or version was paused"
	case f.class() == "":
		words = "a relay took it and gave it back unsent"
	case last != nil && value(last.ErrorClass) == f.class():
		words = f.lastSend()
	default:
		words = "nothing of it could be sent: " + f.lastError() + "; that costs no attempt"
	}
	return words + f.mayHaveTakenEffect()
}

func (f facts) due() bool { return f.message.DueAt == nil || !f.message.DueAt.After(f.now) }

// lapsed tells that the last thing to happen was that a lease ended: another relay took the message back, or the one that
// sent it cut the send off.
func (f facts) lapsed() bool {
	last := f.last()
	cutOff := last != nil && last.Outcome == string(relay.WhatLapse) && value(last.ErrorClass) == f.class()
	return f.message.Lapses > 0 && (f.message.LeaseID < 0 || cutOff)
}

// lastSend tells what the last send came to that was recorded.
func (f facts) lastSend() string {
	last := f.last()
	words, outcome, charge := f.attempt(last.Attempt), " was turned down", ""
	if last.Outcome == string(relay.WhatUnknown) {
		outcome = " went out and its answer was lost"
	}
	if !f.charged() {
		words, charge = "a send", ", and not charged, since the breaker opened meanwhile"
	}
	return words + " by relay " + last.Relay + outcome + " at " + f.when(last.StartedAt.Add(time.Duration(last.Duration))) + charge + ": " +
		joined(value(last.ErrorClass), answered(*last)) + saying(*last)
}

// mayHaveTakenEffect tells of a send whose answer was lost.
func (f facts) mayHaveTakenEffect() string {
	if f.message.UnknownSince == nil {
		return ""
	}
	if last := f.last(); f.message.State == string(relay.Pending) && last != nil && last.StartedAt.Sub(f.message.UnknownSince.Time).Abs() < time.Second {
		return "; it may have taken effect"
	}
	return "; an earlier send, at " + f.when(f.message.UnknownSince.Time) + ", may have taken effect"
}

// nextOfPending tells what the message waits for, and what then becomes of it.
func (f facts) nextOfPending() (next string, commands []string) {
	var parts []string
	if !f.due() && f.message.LeaseID != 0 {
		parts = append(parts, "it is due at "+f.when(f.message.DueAt.Time))
	}
	obstacles, commands := f.obstacles()
	fate, ends := f.fate()
	if len(obstacles) > 0 {
		parts = append(parts, obstacles...)
	} else {
		parts = append(parts, f.course(fate)...)
		if !f.due() {
			commands = append(commands, "outboxd retry-now "+f.message.ID)
		}
	}
	if !ends {
		parts = append(parts, f.deadlines()...)
	}
	return strings.Join(parts, "; "), commands
}

// course is what happens to a message that nothing known keeps from being taken. Without a route that is a guess: what may
// stand in its way comes first, and what is not known last.
func (f facts) course(fate string) (parts []string) {
	lead, condition := "", ""
	if perhaps := f.perhaps(); perhaps != "" {
		parts, lead = append(parts, perhaps), "otherwise "
	}
	if !f.routed() {
		condition = ", if it has a route for routing key " + f.message.RoutingKey
	}
	switch {
	case !f.due() && condition == "":
		parts = append(parts, "then "+f.takers()+" takes it "+fate)
	case !f.due():
		parts = append(parts, orElse(lead, "then ")+f.takers()+" takes it"+condition+", "+fate)
	case f.now.Sub(f.message.DueAt.Time) > slowFor:
		parts = append(parts, lead+f.overdue())
	default:
		parts = append(parts, lead+f.takers()+" takes it as soon as there is room"+condition+", "+fate)
	}
	if !f.routed() {
		parts = append(parts, f.askConfiguration())
	}
	return parts
}

// takers are the relays one of which takes the message.
func (f facts) takers() string {
	to := f.destination()
	return oneOf(slices.DeleteFunc(f.servers(to), func(name string) bool { return f.holds(name, to) != nil }))
}

// overdue tells of a message that nothing known keeps from being taken.
func (f facts) overdue() string {
	words := "relays are alive (" + strings.Join(f.servers(f.destination()), ", ") + ") and do not take it: they are too slow for what waits, or "
	if f.plan == nil {
		words += "have no route for routing key " + f.message.RoutingKey
	} else {
		words += "run with another configuration"
	}
	return words + "; outboxd status shows more"
}

// fate is what becomes of the message when a relay takes it, and whether that ends it: the order of relay/DESIGN.md, Admit.
func (f facts) fate() (words string, ends bool) {
	m, at := f.message, f.now
	if !f.due() {
		at = m.DueAt.Time
	}
	switch {
	case m.UnknownSince != nil && f.dedupe().Never:
		return "and it ends failed (unknown): its destination remembers no key", true
	case m.UnknownSince != nil && f.forgotten(at):
		return "and it ends failed (unknown): its destination may have forgotten its key by then", true
	case m.Lapses > relay.MaxLapses:
		return "and it ends failed (lease_lost), so that it kills no other relay", true
	case m.ExpiresAt != nil && m.ExpiresAt.Before(at) && m.UnknownSince != nil:
		return "and it ends failed (unknown), past its expires_at of " + f.when(m.ExpiresAt.Time), true
	case m.ExpiresAt != nil && m.ExpiresAt.Before(at):
		return "and it ends failed (expired), past its expires_at of " + f.when(m.ExpiresAt.Time), true
	}
	send := "and sends it"
	if m.Lapses > 1 {
		send += " alone"
	}
	if f.routed() {
		return send + " to " + f.plan.destination + ": " + f.attempt(m.Attempts+1), false
	}
	send += ": " + f.attempt(m.Attempts+1)
	if m.UnknownSince != nil {
		send += "; where its destination remembers no key, or this one no longer, it ends failed (unknown) instead"
	}
	return send, false
}

// forgotten tells that the destination may have forgotten the wire key at that time.
func (f facts) forgotten(at time.Time) bool {
	d := f.dedupe()
	return d.Never || d.Window > 0 && !at.Before(f.message.UnknownSince.Add(d.Window))
}

// deadlines are what ends the message if it is not sent before.
func (f facts) deadlines() (words []string) {
	m, d := f.message, f.dedupe()
	if m.UnknownSince != nil && d.Window > 0 && !f.forgotten(f.now) {
		words = append(words, "its destination remembers its key for "+span(d.Window)+", so it can be sent again until "+
			f.when(m.UnknownSince.Add(d.Window))+", and then ends failed (unknown)")
	}
	if m.ExpiresAt != nil && m.ExpiresAt.After(f.now) {
		words = append(words, "it expires at "+f.when(m.ExpiresAt.Time))
	}
	return words
}
