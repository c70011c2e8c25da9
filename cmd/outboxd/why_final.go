package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// whyInFlight tells whose the message is, and for how long.
func (f facts) whyInFlight() string {
	lapses := ""
	if n := f.message.Lapses; n > 0 {
		lapses = "; " + counted(n, "lease") + " before ended without an outcome of it"
	}
	if f.lease == nil {
		return "it is under a lease whose row is gone, as after a restore or a DELETE" + lapses
	}
	words := "relay " + f.lease.Relay + " took it at " + f.when(f.lease.ClaimedAt.Time) + ", and "
	renewed := "its lease of " + span(time.Duration(f.lease.Length)) + ", last renewed " + span(f.now.Sub(f.lease.RenewedAt.Time)) + " ago,"
	_, alive := f.alive()[f.lease.Relay]
	switch left := f.left(); {
	case left <= 0:
		words += renewed + " has stood still for longer than that"
	case alive:
		words += renewed + " stands for another " + span(left)
	default:
		words += "did not tell lately that it is alive; " + renewed + " stands for another " + span(left)
	}
	return words + lapses + f.mayHaveTakenEffect()
}

// left is how long the lease would stand if it were not renewed.
func (f facts) left() time.Duration {
	return f.lease.RenewedAt.Add(time.Duration(f.lease.Length)).Sub(f.now)
}

// nextInFlight tells who ends the flight.
func (f facts) nextInFlight() string {
	alive := len(f.alive()) > 0
	switch {
	case !alive && f.lease == nil:
		return noRelay(f.relays)
	case f.lease == nil:
		return f.watchers("") + " walks slowly through the table, finds it, and makes it pending"
	case !alive:
		return noRelay(f.relays) + "; the one that is started takes the message back after it watched the lease for " +
			span(time.Duration(f.lease.Length))
	}
	if _, there := f.alive()[f.lease.Relay]; there && f.left() > 0 {
		within := ""
		if f.plan != nil && f.plan.destination != "" {
			within = ", which may take " + span(f.plan.policy.Timeout)
		}
		return "the outcome is written when its send ends" + within + "; if the relay dies, another one takes the message back once the lease has stood still for " +
			span(time.Duration(f.lease.Length))
	}
	others := f.watchers(f.lease.Relay)
	if others == "" {
		return "no other relay is alive to take the message back: start one with outboxd run, or " + f.lease.Relay + " anew"
	}
	return others + " takes the message back after it saw the lease stand still for " + span(time.Duration(f.lease.Length)) +
		": pending, due at once, and one lapse more"
}

// watchers are the relays alive one of which takes back what another one left; empty: there is none.
func (f facts) watchers(but string) string {
	return oneOf(slices.DeleteFunc(slices.Sorted(maps.Keys(f.alive())), func(name string) bool { return name == but }))
}

// oneOf is a relay, or one of several, in a sentence.
func oneOf(relays []string) string {
	switch len(relays) {
	case 0:
		return ""
	case 1:
		return "relay " + relays[0]
	}
	return "one of the relays " + listing(relays)
}

// whyDone tells who acknowledged what, and how long it took.
func (f facts) whyDone() string {
	m := f.message
	words := "its destination acknowledged it at " + f.when(m.DoneAt.Time)
	if answer := f.calledDone(); answer != "" {
		words = "its destination answered " + answer + ", which outcomes of the configuration call done, at " + f.when(m.DoneAt.Time)
	}
	if m.Result != nil {
		words += ", as " + firstLine(*m.Result)
	}
	words += ", after " + counted(m.Attempts, "attempt")
	if m.Replays > 0 {
		words += fmt.Sprintf(" in its life %d", m.Replays+1)
	}
	return words + " and " + span(m.DoneAt.Sub(m.CreatedAt.Time)) + " after it was written"
}

// whyFailed tells what ended the message.
func (f facts) whyFailed() string {
	words := "at " + f.when(f.message.FailedAt.Time) + ", " + f.ending()
	if f.message.UnknownSince != nil && value(f.message.Reason) == string(relay.Unknowable) {
		return words + "; nobody knows whether the send at " + f.when(f.message.UnknownSince.Time) + ", took effect"
	}
	return words + f.mayHaveTakenEffect()
}

// ending says what each reason means.
func (f facts) ending() string {
	m := f.message
	switch relay.Reason(value(m.Reason)) {
	case relay.Exhausted:
		return counted(m.Attempts, "attempt") + " had failed, and more its budget does not allow; the last: " + f.verdict()
	case relay.Rejected:
		_, called := overridden(value(m.LastError))
		switch {
		case called == string(relay.KindRetry):
			return counted(m.Attempts, "attempt") + " had failed, and outcomes of the configuration allow no more; the last: " + f.verdict()
		case called != "":
			return "its destination answered " + f.verdict()
		case f.class() == "auth":
			return "its destination refused us the permission: " + f.verdict()
		case m.Attempts == 0:
			return "the relay could not send it as it is: " + f.lastError()
		}
		return "its destination answered that it will never take it: " + f.verdict()
	case relay.TooLarge:
		return "it is too large for its destination: " + f.verdict()
	case relay.Expired:
		return "it was still unsent past its expires_at"
	case relay.Cancelled:
		return "an operator cancelled it"
	case relay.LeaseLost:
		return "four leases in a row ended without an outcome of it: sending it may kill the relay"
	case relay.Unknowable:
	}
	return "it was not sent again: " + f.verdict()
}

// verdict is the error that ended the message, what the configuration made of it, and what its destination said.
func (f facts) verdict() string {
	text, called := overridden(value(f.message.LastError))
	words := joined(f.class(), firstLine(text))
	if called != "" {
		words += ", which outcomes of the configuration call " + called
	}
	if last := f.last(); last != nil && value(last.ErrorClass) == f.class() {
		words += saying(*last)
	}
	return words
}

// saying quotes the start of what a recorded send was answered.
func saying(a dialect.Attempt) string {
	if text := beginning(value(a.Answer)); text != "" {
		return "; it said: " + text
	}
	return ""
}

// overridden takes off an error what a sink puts behind one that outcomes of the configuration changed: as what.
func overridden(text string) (rest, called string) {
	before, after, found := strings.Cut(text, " by the outcomes of this destination")
	i := strings.LastIndex(before, ", ")
	if !found || i < 0 {
		return text, ""
	}
	return before[:i] + after, before[i+len(", "):]
}

// calledDone is an answer that is done by outcomes of the configuration alone; empty: it is done by itself, or nobody knows.
// HTTP and the exit codes of programs overlap from 200 to 255, where nothing is said.
func (f facts) calledDone() string {
	last := f.last()
	switch {
	case last == nil || last.Outcome != string(relay.WhatDone) || last.Status == nil:
		return ""
	case *last.Status >= 300:
		return fmt.Sprintf("HTTP %d", *last.Status)
	case *last.Status > 0 && *last.Status < 200:
		return fmt.Sprintf("exit code %d", *last.Status)
	}
	return ""
}
