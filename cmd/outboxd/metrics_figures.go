package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/outboxd/outboxd/relay"
)

// figures are the gauges of the whole table. One relay tells them, as long as they are fresh; of the others they are absent.
type figures struct {
	queueAge, messages, unresolved, unrouted, truncated, lapsed, snapshot, read *prometheus.Desc
}

func newFigures() figures {
	return figures{
		queueAge: desc("queue_age_seconds", "For how long the oldest due message has been due; 0 if none is.", "routing_key", "type", "destination"),
		messages: desc("messages", "Messages by state; at least so many.", "type", "state"),
		unresolved: desc("failed_unresolved", "Failed messages that nobody has resolved; at least so many.",
			"type", "reason"),
		unrouted: desc("unrouted_messages", "Messages that are due and that no route takes; at least so many."),
		truncated: desc("probe_truncated", "1 if only a part of what waits under the routing key was looked at: counts are lower bounds, and types that were not seen are absent.",
			"routing_key"),
		lapsed:   desc("oldest_lapsed_lease_age_seconds", "For how long the oldest lease should have been renewed that was not; 0 if none."),
		snapshot: desc("db_oldest_snapshot_age_seconds", "Age of the oldest transaction that holds back vacuum or purge; absent where the relay's role may not see it."),
		read:     desc("probe_last_success_timestamp_seconds", "When the figures of the whole table were last read; 0 before the first time."),
	}
}

func (f figures) all() []*prometheus.Desc {
	return []*prometheus.Desc{f.queueAge, f.messages, f.unresolved, f.unrouted, f.truncated, f.lapsed, f.snapshot, f.read}
}

func (f figures) collect(l *labels, told *relay.Figures, to sums) {
	to.add(f.read, seconds(told.Read))
	if !told.Fresh {
		return
	}
	f.waiting(l, told, to)
	f.standing(l, told.Totals, to)
	to.add(f.unrouted, float64(told.Unrouted()))
	to.add(f.lapsed, told.Totals.Lapsed.Seconds())
	if told.Totals.Snapshot != nil {
		to.add(f.snapshot, told.Totals.Snapshot.Seconds())
	}
}

// waiting tells what is pending. Where not all was looked at, types that were not seen are absent: 0 would be a lie.
func (f figures) waiting(l *labels, told *relay.Figures, to sums) {
	cut := map[string]bool{}
	for _, d := range told.Depths {
		key := bound(l.routingKeys, d.RoutingKey)
		cut[key] = cut[key] || d.More
		to.add(f.messages, float64(d.Pending), bound(l.types, d.Type), string(relay.Pending))
		if d.Destination != "" {
			at := l.lane(d.RoutingKey, d.Type, d.Destination)
			to.most(f.queueAge, d.Oldest.Seconds(), at.routingKey, at.kind, at.destination)
		}
	}
	cut[other] = cut[other] || told.Beyond
	some := cut[other]
	to.add(f.truncated, oneIf(cut[other]), other)
	for key := range l.routingKeys {
		to.add(f.truncated, oneIf(cut[key]), key)
		some = some || cut[key]
	}
	for at := range l.lanes {
		if !cut[at.routingKey] {
			to.most(f.queueAge, 0, at.routingKey, at.kind, at.destination)
		}
	}
	if !some {
		l.eachType(func(kind string) { to.add(f.messages, 0, kind, string(relay.Pending)) })
	}
}

// standing tells what is in flight and what failed.
func (f figures) standing(l *labels, t relay.Totals, to sums) {
	for kind, n := range t.InFlight {
		to.add(f.messages, float64(n), bound(l.types, kind), string(relay.InFlight))
	}
	if !t.InFlightMore {
		l.eachType(func(kind string) { to.add(f.messages, 0, kind, string(relay.InFlight)) })
	}
	for failed, n := range t.Failed {
		to.add(f.unresolved, float64(n), bound(l.types, failed.Type), string(failed.Reason))
	}
	if t.FailedMore {
		return
	}
	for _, reason := range unresolvable() {
		l.eachType(func(kind string) { to.add(f.unresolved, 0, kind, string(reason)) })
	}
}
