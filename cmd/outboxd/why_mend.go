package main

import (
	"strings"

	"github.com/outboxd/outboxd/relay"
)

// mend says what a person can do about a failed message, and with which commands.
func (f facts) mend() (next string, commands []string) {
	id, reason := f.message.ID, relay.Reason(value(f.message.Reason))
	replay, key := f.replay()
	resolve := "outboxd resolve " + id + ` --note "why it needs nothing more"`
	switch {
	case f.message.ResolvedAt != nil:
		next, commands = "nothing: it needs nothing more since "+f.when(f.message.ResolvedAt.Time)+"; a replay sends it all the same, "+key, []string{replay}
	case reason == relay.Rejected && f.message.Attempts == 0:
		next, commands = "no replay mends that: let the application write it anew, and resolve this one", []string{resolve}
	case f.message.UnknownSince != nil:
		next = "look at its receiver for the key " + f.wireKey() + f.orAggregate() + "; if it did the work, resolve the message; if not, replay it, " + key
		commands = []string{resolve, replay}
	case f.judge(relay.Order{}).NewKey:
		next = "correct its payload, or replay it once its receiver takes it, " + key
		commands = []string{"outboxd correct " + id + " --payload-file FILE --note \"what was wrong\"", replay, resolve}
	case reason == relay.Rejected:
		next, commands = "replay it once the permission is there, "+key, []string{replay, resolve}
	default:
		next, commands = "replay it once its destination works, "+key, []string{replay, resolve}
	}
	if reason == relay.LeaseLost {
		next = "look into the logs of the relays for what ended them; then " + next
	}
	if len(f.alive()) == 0 {
		next += ". No relay is alive: an operation is applied as soon as one runs"
	}
	return next, commands
}

// replay is the command that sends the message again, and under which key it does, as relay.Judge decides.
func (f facts) replay() (command, key string) {
	m := f.message
	var order relay.Order
	command = "outboxd replay " + m.ID
	if f.plan != nil && f.plan.remembers && strings.HasPrefix(f.class(), "http_5") {
		order.WireKey = relay.NewKey
		command += " --new-key"
	}
	v := f.judge(order)
	if v.Why == relay.SkipUnknown {
		order.Force = true
		command += ` --force --note "who looked at the receiver"`
		v = f.judge(order)
	}
	switch {
	case v.NewKey && order.WireKey == relay.NewKey:
		return command, "under a new key: its receiver gives failures again to the old one" + f.twice()
	case v.NewKey:
		return command, "under a new key: a receiver that keeps its answers gives the old one to the old key" + f.twice()
	case !f.routed():
		return command, f.replayBlind()
	case f.dedupe().Never:
		return command, "under the key of before, " + f.wireKey() + ", which its receiver does not remember: it does the work again if it did it before"
	case order.Force:
		return command, "under the key of before, which its receiver may have forgotten: it then does the work again"
	case f.dedupe().Window > 0 && m.UnknownSince == nil && f.now.Sub(m.FailedAt.Time) > f.dedupe().Window:
		return command, "under the key of before, " + f.wireKey() + ", which its receiver may have forgotten: it does the work again if it did it before"
	}
	key = "under the key of before, " + f.wireKey() + ": a receiver that did the work drops it"
	if window := f.dedupe().Window; m.UnknownSince != nil && window > 0 {
		key += ", but it may forget the key at " + f.when(m.UnknownSince.Add(window))
	}
	return command, key
}

// replayBlind is the key of a replay where nobody knows here how long its receiver remembers it.
func (f facts) replayBlind() string {
	words := "under the key of before, " + f.wireKey() + ": a receiver that remembers it drops what it did before, and one that does not does the work again"
	if f.message.UnknownSince != nil {
		words += "; a relay that knows the second by its configuration leaves the message out, unless the replay has --force"
	}
	return words + "; " + f.askConfiguration()
}

// twice warns of a new key, which its receiver has never seen.
func (f facts) twice() string {
	if f.message.UnknownSince == nil {
		return ""
	}
	return "; if an earlier send took effect, the work is done twice"
}

// orAggregate is what a receiver that remembers no keys can be asked for.
func (f facts) orAggregate() string {
	if id := value(f.message.AggregateID); id != "" {
		return ", or for the aggregateid " + firstLine(id)
	}
	return ""
}

// judge asks what a replay would do that names the failed message by its id.
func (f facts) judge(order relay.Order) relay.Verdict {
	m := f.message
	order.IDs = []string{m.ID}
	c := relay.Candidate{
		ID: m.ID, RoutingKey: m.RoutingKey, Type: m.Type, State: relay.State(m.State), Reason: relay.Reason(value(m.Reason)),
		ErrorClass: f.class(), Resolved: m.ResolvedAt != nil, Went: true,
	}
	if m.UnknownSince != nil {
		c.Unknown, c.UnknownFor = true, f.now.Sub(m.UnknownSince.Time)
	}
	return relay.Judge(relay.Operation{Op: relay.OpReplay, Order: order}, c, f.dedupe())
}
