package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// obstacles are what keeps the message from being sent now, the worst first, and the commands that end some of them.
func (f facts) obstacles() (words, commands []string) {
	switch {
	case len(f.alive()) == 0:
		words = append(words, noRelay(f.relays))
	case len(foreign(f.instance, f.alive())) == len(f.alive()):
		words = append(words, foreign(f.instance, f.alive())...)
	case f.plan != nil && !f.routed():
		words = append(words, "no route takes routing key "+f.message.RoutingKey+": add one to the configuration")
	case len(f.servers(f.destination())) == 0:
		words = append(words, "no relay that is alive has the destination "+f.plan.destination+": start one with this configuration")
	}
	for _, p := range f.pauses {
		target, err := relay.ParseTarget(p.Target)
		if err == nil && f.concerned(target) && (p.Left == nil || *p.Left > 0) {
			words, commands = append(words, f.pause(p)), append(commands, resumeOf(target))
		}
	}
	if f.routed() && !f.accepted() {
		words = append(words, fmt.Sprintf("the configuration accepts only %s of type %s: add %d to versions",
			versions(f.plan.policy.Versions), f.message.Type, f.message.SchemaVersion))
	}
	if f.plan == nil && f.class() == relay.ClassNoPolicy && !f.due() {
		words = append(words, "a configuration has to accept it; the first relay that starts with a new one looks at once")
	}
	if held := f.held(); held != "" {
		words = append(words, held)
	}
	return words, commands
}

// pause tells of a pause.
func (f facts) pause(p dialect.PauseStatus) string {
	words := p.Target + " is paused by " + p.Actor
	if p.Note != "" {
		words += " (" + firstLine(p.Note) + ")"
	}
	if p.Left == nil {
		return words + " until somebody resumes it"
	}
	return words + " until " + f.when(f.now.Add(time.Duration(*p.Left))) + ", or until somebody resumes it"
}

// accepted tells whether the policy takes the message's version.
func (f facts) accepted() bool {
	v := f.plan.policy.Versions
	return len(v) == 0 || slices.Contains(v, f.message.SchemaVersion)
}

// concerned tells whether a pause of the target holds the message.
func (f facts) concerned(t relay.Target) bool {
	m := f.message
	switch {
	case t.Destination != "":
		return t.Destination == f.destination()
	case t.RoutingKey != "":
		return t.RoutingKey == m.RoutingKey
	case t.Type != "":
		return t.Type == m.Type && (t.SchemaVersion == 0 || t.SchemaVersion == m.SchemaVersion)
	}
	return t.Everything
}

// resumeOf is the command that ends a pause.
func resumeOf(t relay.Target) string {
	switch {
	case t.Everything:
		return "outboxd resume --everything"
	case t.Destination != "":
		return "outboxd resume " + shellWord(t.Destination)
	case t.RoutingKey != "":
		return "outboxd resume --routing-key " + shellWord(t.RoutingKey)
	case t.SchemaVersion != 0:
		return fmt.Sprintf("outboxd resume --type %s --schema-version %d", shellWord(t.Type), t.SchemaVersion)
	}
	return "outboxd resume --type " + shellWord(t.Type)
}

// held tells of breakers that hold the message back at every relay that could take it.
func (f facts) held() string {
	first, relays := f.heldBy(f.destination())
	if first == nil {
		return ""
	}
	where := "relay " + first.Relay
	if len(relays) > 1 {
		where = fmt.Sprintf("all %d relays that have it, as at %s", len(relays), first.Relay)
	}
	return f.breaker(*first, where)
}

// heldBy returns the relays that have a destination where all of them hold the message back from it, and the first of the
// breakers with which they do; nil: one of them does not. An empty destination is any with a breaker for the message's
// routing key.
func (f facts) heldBy(destination string) (first *dialect.BreakerStatus, relays []string) {
	relays = f.servers(destination)
	for _, name := range relays {
		b := f.holds(name, destination)
		if b == nil {
			return nil, nil
		}
		if first == nil {
			first = b
		}
	}
	return first, relays
}

// holds returns the breaker with which a relay holds the message back from a destination; nil: it does not.
func (f facts) holds(relay, from string) *dialect.BreakerStatus {
	for _, b := range f.breakers {
		destination, key, _ := strings.Cut(b.Name, "/")
		of := destination == from && (key == "" || key == f.message.RoutingKey) || from == "" && key == f.message.RoutingKey
		if b.Relay == relay && of && slices.Contains([]string{"open", "throttled", "standby"}, b.State) {
			return &b
		}
	}
	return nil
}

// breaker says what a breaker means for who waits.
func (f facts) breaker(b dialect.BreakerStatus, where string) string {
	destination, key, _ := strings.Cut(b.Name, "/")
	words := "destination " + destination
	if key != "" {
		words = "routing key " + key + " at destination " + destination
	}
	switch b.State {
	case "throttled":
		words += " asked " + where + " for a rest, of 5m at most"
	case "standby":
		words += " has its places taken by other relays, and none for " + where
	default:
		words += fmt.Sprintf(" is open at %s, after %s in a row: one probe at a time goes out, ", where, counted(b.Failures, "failure"))
		if f.plan != nil {
			words += "the next within " + span(f.plan.cap) + ", "
		}
		words += "until one is answered"
	}
	words += " (as of " + span(time.Duration(b.Age)) + " ago)"
	if b.LastError != "" {
		words += "; the last error there: " + firstLine(b.LastError)
	}
	return words
}

// perhaps names the destinations that are held back or paused, where nobody knows here which is the message's; empty: there
// is none, or that is known.
func (f facts) perhaps() string {
	if f.plan != nil {
		return ""
	}
	var names []string
	for name := range f.served() {
		if b, relays := f.heldBy(name); b != nil {
			names = append(names, name+", which "+notNow(*b, either(len(relays) == 1, "relay ", "the relays ")+listing(relays)))
		}
	}
	for _, p := range f.pauses {
		if target, err := relay.ParseTarget(p.Target); err == nil && target.Destination != "" && (p.Left == nil || *p.Left > 0) {
			names = append(names, target.Destination+", which is paused by "+p.Actor)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return "its route may lead to " + strings.Join(names, ", or to ")
}

// served are the destinations of the relays that are alive.
func (f facts) served() map[string]bool {
	served := map[string]bool{}
	for _, r := range f.alive() {
		for _, name := range r.Destinations {
			served[name] = true
		}
	}
	return served
}

// notNow says in a few words that a destination gets nothing.
func notNow(b dialect.BreakerStatus, where string) string {
	words := "is open at " + where
	switch b.State {
	case "throttled":
		words = "asked " + where + " for a rest"
	case "standby":
		words = "has no place for " + where
	}
	if b.LastError != "" {
		words += " (" + firstLine(b.LastError) + ")"
	}
	return words
}
