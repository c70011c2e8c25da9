package main

import (
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// obstacleCases are messages that something stands in the way of.
func obstacleCases() []explained {
	paused := func(target string, left *dialect.Age) []dialect.PauseStatus {
		return []dialect.PauseStatus{{Target: target, Actor: "bob", Note: "upgrade", Left: left}}
	}
	dead := []dialect.RelayStatus{{Name: "a", Host: "h1", SeenFor: dialect.Age(5 * time.Minute)}}
	return []explained{
		{
			name: "no relay yet", facts: facts{message: message(relay.Pending), plan: toBilling()},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "no relay is alive: nothing is sent until one is started with outboxd run",
		},
		{
			name: "its relay died", facts: facts{message: message(relay.Pending), relays: dead},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "no relay is alive: nothing is sent until one is started with outboxd run; the last was a on host h1, seen 5m0s ago",
		},
		{
			name: "only relays of another instance", facts: facts{message: message(relay.Pending), relays: alive("a"), instance: "shop", plan: toBilling()},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "relay a names no instance and sends nothing: the outbox belongs to shop; give the relay that name, or see outboxd instance --help",
		},
		{
			name: "no route", facts: facts{message: message(relay.Pending), relays: alive("a"), plan: &plan{}},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "no route takes routing key charges: add one to the configuration",
		},
		{
			name: "no relay has its destination", facts: facts{message: message(relay.Pending), relays: only("crm", "a"), plan: toBilling()},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "no relay that is alive has the destination billing: start one with this configuration",
		},
		{
			name: "its destination is paused", facts: facts{message: message(relay.Pending), relays: alive("a"), plan: toBilling(), pauses: paused("destination:billing", age(20*time.Minute))},
			why:      "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next:     "destination:billing is paused by bob (upgrade) until 2026-01-31T12:20:00Z, in 20m, or until somebody resumes it",
			commands: []string{"outboxd resume billing"},
		},
		{
			name: "another destination is paused", facts: facts{message: message(relay.Pending), relays: alive("a"), plan: toBilling(), pauses: paused("destination:crm", nil)},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "relay a takes it as soon as there is room, and sends it to billing: attempt 1 of 3",
		},
		{
			name: "a pause whose time is over", facts: facts{message: message(relay.Pending), relays: alive("a"), plan: toBilling(), pauses: paused("everything", age(0))},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "relay a takes it as soon as there is room, and sends it to billing: attempt 1 of 3",
		},
		{
			name: "everything is paused", facts: facts{message: message(relay.Pending), relays: alive("a"), pauses: paused("everything", nil)},
			why:      "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next:     "everything is paused by bob (upgrade) until somebody resumes it",
			commands: []string{"outboxd resume --everything"},
		},
		{
			name: "its routing key is paused, and no relay is alive", facts: facts{message: message(relay.Pending), relays: dead, pauses: paused("routing_key:charges", nil)},
			why:      "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next:     "no relay is alive: nothing is sent until one is started with outboxd run; the last was a on host h1, seen 5m0s ago; routing_key:charges is paused by bob (upgrade) until somebody resumes it",
			commands: []string{"outboxd resume --routing-key charges"},
		},
		{
			name: "its type is paused", facts: facts{message: message(relay.Pending, due(time.Minute), erred(0, relay.ClassPaused, "")), relays: alive("a"), pauses: paused("type:charge", nil)},
			why:      "a relay turned it back, because its type or version was paused",
			next:     "it is due at 2026-01-31T12:01:00Z, in 1m; type:charge is paused by bob (upgrade) until somebody resumes it",
			commands: []string{"outboxd resume --type charge"},
		},
		{
			name: "its version is paused", facts: facts{message: message(relay.Pending), relays: alive("a"), pauses: paused("type_version:2@charge", nil)},
			why:      "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next:     "type_version:2@charge is paused by bob (upgrade) until somebody resumes it",
			commands: []string{"outboxd resume --type charge --schema-version 2"},
		},
		{
			name: "another version is paused", facts: facts{message: message(relay.Pending), relays: only("crm", "a"), pauses: paused("type_version:3@charge", nil)},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "relay a takes it as soon as there is room" + ifRouted + ", and sends it: attempt 1" + askFile,
		},
		{
			name: "its type was paused", facts: facts{message: message(relay.Pending, due(time.Minute), erred(0, relay.ClassPaused, "")), relays: alive("a"), plan: toBilling()},
			why:      "a relay turned it back, because its type or version was paused",
			next:     "it is due at 2026-01-31T12:01:00Z, in 1m; then relay a takes it and sends it to billing: attempt 1 of 3",
			commands: []string{"outboxd retry-now m1"},
		},
		{
			name: "no policy", facts: facts{message: message(relay.Pending, due(time.Minute), erred(0, relay.ClassNoPolicy, "")), relays: alive("a"), plan: toBilling(1, 3)},
			why:  "a relay turned it back, because no policy accepted version 2 of type charge",
			next: "it is due at 2026-01-31T12:01:00Z, in 1m; the configuration accepts only versions 1 and 3 of type charge: add 2 to versions",
		},
		{
			name: "no policy, without a configuration", facts: facts{message: message(relay.Pending, due(time.Minute), erred(0, relay.ClassNoPolicy, "")), relays: alive("a")},
			why:  "a relay turned it back, because no policy accepted version 2 of type charge",
			next: "it is due at 2026-01-31T12:01:00Z, in 1m; a configuration has to accept it; the first relay that starts with a new one looks at once",
		},
		{
			name: "no policy, and this configuration has one", facts: facts{message: message(relay.Pending, due(time.Minute), erred(0, relay.ClassNoPolicy, "")), relays: alive("a"), plan: toBilling(2)},
			why:      "a relay turned it back, because no policy accepted version 2 of type charge",
			next:     "it is due at 2026-01-31T12:01:00Z, in 1m; then relay a takes it and sends it to billing: attempt 1 of 3",
			commands: []string{"outboxd retry-now m1"},
		},
		{
			name: "no policy will take it", facts: facts{message: message(relay.Pending), relays: alive("a"), plan: toBilling(1)},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "the configuration accepts only version 1 of type charge: add 2 to versions",
		},
		{
			name: "its destination is open", facts: facts{message: message(relay.Pending, due(-5*time.Minute)), relays: alive("a"), plan: toBilling(), breakers: []dialect.BreakerStatus{breaker("a", "billing", "open")}},
			why:  "it has been due since 2026-01-31T11:55:00Z, 5m ago, and no relay took it yet",
			next: "destination billing is open at relay a, after 5 failures in a row: one probe at a time goes out, the next within 30s, until one is answered (as of 2s ago); the last error there: refused: connection refused",
		},
		{
			name: "its destination is open at all relays", facts: facts{message: message(relay.Pending), relays: alive("a", "b"), plan: toBilling(), breakers: []dialect.BreakerStatus{breaker("a", "billing", "open"), breaker("b", "billing", "open")}},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "destination billing is open at all 2 relays that have it, as at a, after 5 failures in a row: one probe at a time goes out, the next within 30s, until one is answered (as of 2s ago); the last error there: refused: connection refused",
		},
		{
			name: "its destination is open at one relay", facts: facts{message: message(relay.Pending), relays: alive("a", "b"), plan: toBilling(), breakers: []dialect.BreakerStatus{breaker("a", "billing", "open"), breaker("b", "billing", "ok")}},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "relay b takes it as soon as there is room, and sends it to billing: attempt 1 of 3",
		},
		{
			name: "its destination wants a rest", facts: facts{message: message(relay.Pending), relays: alive("a"), plan: toBilling(), breakers: []dialect.BreakerStatus{breaker("a", "billing", "throttled")}},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "destination billing asked relay a for a rest, of 5m at most (as of 2s ago); the last error there: refused: connection refused",
		},
		{
			name: "other relays have the places", facts: facts{message: message(relay.Pending), relays: alive("a"), plan: toBilling(), breakers: []dialect.BreakerStatus{{Relay: "a", Name: "billing", State: "standby"}}},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "destination billing has its places taken by other relays, and none for relay a (as of 0s ago)",
		},
		{
			name: "its routing key is open, without a configuration", facts: facts{message: message(relay.Pending), relays: alive("a"), breakers: []dialect.BreakerStatus{breaker("a", "kafka/charges", "open")}},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "routing key charges at destination kafka is open at relay a, after 5 failures in a row: one probe at a time goes out, until one is answered (as of 2s ago); the last error there: refused: connection refused",
		},
		{
			name: "another routing key is open", facts: facts{message: message(relay.Pending), relays: only("kafka", "a"), breakers: []dialect.BreakerStatus{breaker("a", "kafka/orders", "open")}},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "relay a takes it as soon as there is room" + ifRouted + ", and sends it: attempt 1" + askFile,
		},
		{
			name: "a destination is open, and nobody knows whether it is its own", facts: facts{
				message: message(relay.Pending, due(-5*time.Minute)), relays: alive("a"),
				breakers: []dialect.BreakerStatus{breaker("a", "billing", "open")}, pauses: paused("destination:crm", nil),
			},
			why:  "it has been due since 2026-01-31T11:55:00Z, 5m ago, and no relay took it yet",
			next: "its route may lead to billing, which is open at relay a (refused: connection refused), or to crm, which is paused by bob; otherwise relays are alive (a) and do not take it: they are too slow for what waits, or have no route for routing key charges; outboxd status shows more" + askFile,
		},
		{
			name: "the only destination is open, and nobody knows whether it is its own", facts: facts{
				message: message(relay.Pending, due(4*time.Second), erred(1, "http_5xx", "503")), relays: only("billing", "a"),
				attempts: []dialect.Attempt{send(1, relay.WhatRetry, "http_5xx", "503", -20*time.Second)},
				breakers: []dialect.BreakerStatus{breaker("a", "billing", "open")},
			},
			why:      "attempt 1 by relay a was turned down at 2026-01-31T11:59:41Z, 19s ago: http_5xx (503)",
			next:     "it is due at 2026-01-31T12:00:04Z, in 4s; its route may lead to billing, which is open at relay a (refused: connection refused); otherwise relay a takes it" + ifRouted + ", and sends it: attempt 2" + askFile,
			commands: []string{"outboxd retry-now m1"},
		},
		{
			name: "destinations want a rest and have no place, and nobody knows which is its own", facts: facts{
				message: message(relay.Pending), relays: alive("a", "b"), pauses: paused("destination:mails", age(0)),
				breakers: []dialect.BreakerStatus{
					breaker("a", "billing", "throttled"), breaker("b", "billing", "open"),
					{Relay: "a", Name: "crm", State: "standby"},
					{Relay: "b", Name: "crm", State: "standby"},
				},
			},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "its route may lead to billing, which asked the relays a and b for a rest (refused: connection refused), or to crm, which has no place for the relays a and b; otherwise one of the relays a and b takes it as soon as there is room" + ifRouted + ", and sends it: attempt 1" + askFile,
		},
		{
			name: "a destination is open at one relay, and nobody knows whether it is its own", facts: facts{
				message: message(relay.Pending), relays: alive("a", "b"), breakers: []dialect.BreakerStatus{breaker("a", "billing", "open"), breaker("b", "billing", "ok")},
			},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "one of the relays a and b takes it as soon as there is room" + ifRouted + ", and sends it: attempt 1" + askFile,
		},
		{
			name: "a destination ramps", facts: facts{message: message(relay.Pending), relays: alive("a"), plan: toBilling(), breakers: []dialect.BreakerStatus{breaker("a", "billing", "ramp")}},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "relay a takes it as soon as there is room, and sends it to billing: attempt 1 of 3",
		},
		{
			name: "the breaker of a dead relay", facts: facts{message: message(relay.Pending), relays: alive("a"), plan: toBilling(), breakers: []dialect.BreakerStatus{breaker("z", "billing", "open")}},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "relay a takes it as soon as there is room, and sends it to billing: attempt 1 of 3",
		},
	}
}
