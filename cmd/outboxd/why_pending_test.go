package main

import (
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// pendingCases are messages that nothing stands in the way of.
func pendingCases() []explained {
	const minute = time.Minute
	return []explained{
		{
			name: "due", facts: facts{message: message(relay.Pending), relays: alive("a"), plan: toBilling()},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "relay a takes it as soon as there is room, and sends it to billing: attempt 1 of 3",
		},
		{
			name: "due, without a configuration", facts: facts{message: message(relay.Pending), relays: alive("a", "b")},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "one of the relays a and b takes it as soon as there is room, and sends it: attempt 1",
		},
		{
			name: "due, the relays have one destination", facts: facts{message: message(relay.Pending), relays: only("crm", "a", "b", "c")},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "one of the relays a, b and c takes it as soon as there is room, and sends it to crm: attempt 1",
		},
		{
			name: "due for long, without a configuration", facts: facts{message: message(relay.Pending, due(-5*minute)), relays: alive("a")},
			why:  "it has been due since 2026-01-31T11:55:00Z, 5m ago, and no relay took it yet",
			next: "relays are alive (a) and do not take it: they are too slow for what waits, or have no route for routing key charges; outboxd status shows more",
		},
		{
			name: "due for long", facts: facts{message: message(relay.Pending, due(-5*minute)), relays: alive("a"), plan: toBilling()},
			why:  "it has been due since 2026-01-31T11:55:00Z, 5m ago, and no relay took it yet",
			next: "relays are alive (a) and do not take it: they are too slow for what waits, or run with another configuration; outboxd status shows more",
		},
		{
			name: "delayed", facts: facts{message: message(relay.Pending, due(time.Hour)), relays: alive("a"), plan: toBilling()},
			why:      "the application delayed it until 2026-01-31T13:00:00Z, in 1h",
			next:     "then relay a takes it and sends it to billing: attempt 1 of 3",
			commands: []string{"outboxd retry-now m1"},
		},
		{
			name: "delayed, and expires before", facts: facts{message: message(relay.Pending, due(time.Hour), func(m *dialect.Message) { m.ExpiresAt = at(minute) }), relays: alive("a"), plan: toBilling()},
			why:      "the application delayed it until 2026-01-31T13:00:00Z, in 1h",
			next:     "then relay a takes it and it ends failed (expired), past its expires_at of 2026-01-31T12:01:00Z, in 1m",
			commands: []string{"outboxd retry-now m1"},
		},
		{
			name: "waits for its next try", facts: facts{
				message:  message(relay.Pending, due(4*time.Second), erred(2, "http_5xx", "503 Service Unavailable")),
				attempts: []dialect.Attempt{send(1, relay.WhatRetry, "http_5xx", "503 Service Unavailable", -20*time.Second), send(2, relay.WhatRetry, "http_5xx", "503 Service Unavailable\nmore", -13*time.Second)},
				relays:   alive("a"), plan: toBilling(),
			},
			why:      "attempt 2 of 3 by relay a was turned down at 2026-01-31T11:59:48Z, 12s ago: http_5xx (503 Service Unavailable)",
			next:     "it is due at 2026-01-31T12:00:04Z, in 4s; then relay a takes it and sends it to billing: attempt 3 of 3",
			commands: []string{"outboxd retry-now m1"},
		},
		{
			name: "not charged, since the breaker opened", facts: facts{
				message:  message(relay.Pending, due(4*time.Second), erred(1, "http_5xx", "503")),
				attempts: []dialect.Attempt{send(1, relay.WhatRetry, "http_5xx", "503", -20*time.Second), send(1, relay.WhatRetry, "http_5xx", "503", -13*time.Second)},
				relays:   alive("a"), plan: toBilling(),
			},
			why:      "a send by relay a was turned down at 2026-01-31T11:59:48Z, 12s ago, and not charged, since the breaker opened meanwhile: http_5xx (503)",
			next:     "it is due at 2026-01-31T12:00:04Z, in 4s; then relay a takes it and sends it to billing: attempt 2 of 3",
			commands: []string{"outboxd retry-now m1"},
		},
		{
			name: "its answer was lost", facts: facts{
				message:  message(relay.Pending, due(4*time.Second), erred(1, "timeout", "no answer within 20s"), unknown(-21*time.Second)),
				attempts: []dialect.Attempt{send(1, relay.WhatUnknown, "timeout", "no answer within 20s", -21*time.Second)},
				relays:   alive("a"), plan: toBilling(),
			},
			why:      "attempt 1 of 3 by relay a went out and its answer was lost at 2026-01-31T11:59:40Z, 20s ago: timeout (no answer within 20s); it may have taken effect",
			next:     "it is due at 2026-01-31T12:00:04Z, in 4s; then relay a takes it and sends it to billing: attempt 2 of 3; its destination remembers its key for 24h, so it can be sent again until 2026-02-01T11:59:39Z, in 24h, and then ends failed (unknown)",
			commands: []string{"outboxd retry-now m1"},
		},
		{
			name: "its answer was lost, without a configuration", facts: facts{
				message:  message(relay.Pending, erred(1, "timeout", "no answer within 20s"), unknown(-21*time.Second)),
				attempts: []dialect.Attempt{send(1, relay.WhatUnknown, "timeout", "no answer within 20s", -21*time.Second)},
				relays:   alive("a"),
			},
			why:  "attempt 1 by relay a went out and its answer was lost at 2026-01-31T11:59:40Z, 20s ago: timeout (no answer within 20s); it may have taken effect",
			next: "relay a takes it as soon as there is room, and sends it: attempt 2",
		},
		{
			name: "its answer was lost, and its key is forgotten", facts: facts{
				message:  message(relay.Pending, erred(1, "timeout", "no answer"), unknown(-25*time.Hour)),
				attempts: []dialect.Attempt{send(1, relay.WhatUnknown, "timeout", "no answer", -25*time.Hour)},
				relays:   alive("a"), plan: toBilling(),
			},
			why:  "attempt 1 of 3 by relay a went out and its answer was lost at 2026-01-30T11:00:01Z, 25h ago: timeout (no answer); it may have taken effect",
			next: "relay a takes it as soon as there is room, and it ends failed (unknown): its destination may have forgotten its key by then",
		},
		{
			name: "nothing went out", facts: facts{
				message: message(relay.Pending, due(4*time.Second), erred(0, "refused", "connection refused")), relays: alive("a"), plan: toBilling(),
			},
			why:      "nothing of it could be sent: refused (connection refused); that costs no attempt",
			next:     "it is due at 2026-01-31T12:00:04Z, in 4s; then relay a takes it and sends it to billing: attempt 1 of 3",
			commands: []string{"outboxd retry-now m1"},
		},
		{
			name: "given back", facts: facts{message: message(relay.Pending, func(m *dialect.Message) { m.LeaseID = 7 }), relays: alive("a"), plan: toBilling()},
			why:  "a relay took it and gave it back unsent",
			next: "relay a takes it as soon as there is room, and sends it to billing: attempt 1 of 3",
		},
		{
			name: "lapsed", facts: facts{
				message:  message(relay.Pending, lapses(1)),
				attempts: []dialect.Attempt{send(0, relay.WhatLapse, "", "", -minute)},
				relays:   alive("b"), plan: toBilling(),
			},
			why:  "1 lease ended without an outcome of it, the last of relay a, which took it at 2026-01-31T11:59:00Z, 1m ago; an earlier send, at 2026-01-31T11:00:00Z, 1h ago, may have taken effect",
			next: "relay b takes it as soon as there is room, and sends it to billing: attempt 1 of 3; its destination remembers its key for 24h, so it can be sent again until 2026-02-01T11:00:00Z, in 23h, and then ends failed (unknown)",
		},
		{
			name: "lapsed three times, and the record is gone", facts: facts{message: message(relay.Pending, lapses(3)), relays: alive("b"), plan: toBilling()},
			why:  "3 leases ended without an outcome of it; an earlier send, at 2026-01-31T11:00:00Z, 1h ago, may have taken effect",
			next: "relay b takes it as soon as there is room, and sends it alone to billing: attempt 1 of 3; its destination remembers its key for 24h, so it can be sent again until 2026-02-01T11:00:00Z, in 23h, and then ends failed (unknown)",
		},
		{
			name: "lapsed too often", facts: facts{message: message(relay.Pending, lapses(4)), relays: alive("b"), plan: toBilling()},
			why:  "4 leases ended without an outcome of it; an earlier send, at 2026-01-31T11:00:00Z, 1h ago, may have taken effect",
			next: "relay b takes it as soon as there is room, and it ends failed (lease_lost), so that it kills no other relay",
		},
		{
			name: "cut off by a stop", facts: facts{
				message:  message(relay.Pending, erred(0, "cut_off", "the relay stopped"), unknown(-minute), func(m *dialect.Message) { m.Lapses = 1 }),
				attempts: []dialect.Attempt{send(0, relay.WhatLapse, "cut_off", "the relay stopped", -minute)},
				relays:   alive("b"), plan: toBilling(),
			},
			why:  "1 lease ended without an outcome of it, the last of relay a, which took it at 2026-01-31T11:59:00Z, 1m ago; it may have taken effect",
			next: "relay b takes it as soon as there is room, and sends it to billing: attempt 1 of 3; its destination remembers its key for 24h, so it can be sent again until 2026-02-01T11:59:00Z, in 23h59m, and then ends failed (unknown)",
		},
		{
			name: "lapsed, then nothing went out", facts: facts{
				message:  message(relay.Pending, due(time.Second), lapses(1), erred(0, "refused", "connection refused")),
				attempts: []dialect.Attempt{send(0, relay.WhatLapse, "", "", -minute)},
				relays:   alive("b"), plan: toBilling(),
			},
			why:      "nothing of it could be sent: refused (connection refused); that costs no attempt; an earlier send, at 2026-01-31T11:00:00Z, 1h ago, may have taken effect",
			next:     "it is due at 2026-01-31T12:00:01Z, in 1s; then relay b takes it and sends it to billing: attempt 1 of 3; its destination remembers its key for 24h, so it can be sent again until 2026-02-01T11:00:00Z, in 23h, and then ends failed (unknown)",
			commands: []string{"outboxd retry-now m1"},
		},
		{
			name: "expired", facts: facts{message: message(relay.Pending, func(m *dialect.Message) { m.ExpiresAt = at(-minute) }), relays: alive("a"), plan: toBilling()},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "relay a takes it as soon as there is room, and it ends failed (expired), past its expires_at of 2026-01-31T11:59:00Z, 1m ago",
		},
		{
			name: "expired, and it may have taken effect", facts: facts{
				message: message(relay.Pending, lapses(1), func(m *dialect.Message) { m.ExpiresAt = at(-minute) }), relays: alive("a"), plan: toBilling(),
			},
			why:  "1 lease ended without an outcome of it; an earlier send, at 2026-01-31T11:00:00Z, 1h ago, may have taken effect",
			next: "relay a takes it as soon as there is room, and it ends failed (unknown), past its expires_at of 2026-01-31T11:59:00Z, 1m ago",
		},
		{
			name: "replayed", facts: facts{
				message:  message(relay.Pending, erred(0, "http_4xx", "422"), func(m *dialect.Message) { m.Replays = 1 }),
				attempts: []dialect.Attempt{send(1, relay.WhatFail, "http_4xx", "422", -minute)},
				relays:   alive("a"), plan: toBilling(),
			},
			why:  "it was replayed, and has been due since 2026-01-31T11:59:58Z, 2s ago",
			next: "relay a takes it as soon as there is room, and sends it to billing: attempt 1 of 3",
		},
		{
			name: "replayed, and turned down again", facts: facts{
				message: message(relay.Pending, due(time.Second), erred(1, "http_5xx", "500"), func(m *dialect.Message) { m.Replays = 1 }),
				attempts: []dialect.Attempt{send(3, relay.WhatRetry, "http_5xx", "500", -time.Hour), {
					Life: 1, Attempt: 1, Relay: "a", StartedAt: *at(-minute), Outcome: "retry", ErrorClass: new("http_5xx"), Error: new("500"),
				}},
				relays: alive("a"), plan: toBilling(),
			},
			why:      "attempt 1 of 3 by relay a was turned down at 2026-01-31T11:59:00Z, 1m ago: http_5xx (500)",
			next:     "it is due at 2026-01-31T12:00:01Z, in 1s; then relay a takes it and sends it to billing: attempt 2 of 3",
			commands: []string{"outboxd retry-now m1"},
		},
	}
}

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
			next: "relay a takes it as soon as there is room, and sends it to crm: attempt 1",
		},
		{
			name: "its type was paused", facts: facts{message: message(relay.Pending, due(time.Minute), erred(0, relay.ClassPaused, "")), relays: alive("a"), plan: toBilling()},
			why:      "a relay turned it back, because its type or version was paused",
			next:     "it is due at 2026-01-31T12:01:00Z, in 1m; then relay a takes it and sends it to billing: attempt 1 of 3",
			commands: []string{"outboxd retry-now m1"},
		},
		{
			name: "no policy", facts: facts{message: message(relay.Pending, due(time.Minute), erred(0, classNoPolicy, "")), relays: alive("a"), plan: toBilling(1, 3)},
			why:  "a relay turned it back, because no policy accepted version 2 of type charge",
			next: "it is due at 2026-01-31T12:01:00Z, in 1m; the configuration accepts only versions 1 and 3 of type charge: add 2 to versions",
		},
		{
			name: "no policy, without a configuration", facts: facts{message: message(relay.Pending, due(time.Minute), erred(0, classNoPolicy, "")), relays: alive("a")},
			why:  "a relay turned it back, because no policy accepted version 2 of type charge",
			next: "it is due at 2026-01-31T12:01:00Z, in 1m; a configuration has to accept it; the first relay that starts with a new one looks at once",
		},
		{
			name: "no policy, and this configuration has one", facts: facts{message: message(relay.Pending, due(time.Minute), erred(0, classNoPolicy, "")), relays: alive("a"), plan: toBilling(2)},
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
			next: "relay a takes it as soon as there is room, and sends it to kafka: attempt 1",
		},
		{
			name: "a destination is open, and nobody knows whether it is its own", facts: facts{
				message: message(relay.Pending, due(-5*time.Minute)), relays: alive("a"),
				breakers: []dialect.BreakerStatus{breaker("a", "billing", "open")}, pauses: paused("destination:crm", nil),
			},
			why:  "it has been due since 2026-01-31T11:55:00Z, 5m ago, and no relay took it yet",
			next: "relays are alive (a) and do not take it: they are too slow for what waits, or have no route for routing key charges, or its route leads to billing, which is open, or to crm, which is paused; outboxd status shows more",
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
