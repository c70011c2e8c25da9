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
			next: "one of the relays a and b takes it as soon as there is room" + ifRouted + ", and sends it: attempt 1" + askFile,
		},
		{
			name: "due, the relays have one destination", facts: facts{message: message(relay.Pending), relays: only("crm", "a", "b", "c")},
			why:  "it has been due since 2026-01-31T11:59:58Z, 2s ago, and no relay took it yet",
			next: "one of the relays a, b and c takes it as soon as there is room" + ifRouted + ", and sends it: attempt 1" + askFile,
		},
		{
			name: "due for long, without a configuration", facts: facts{message: message(relay.Pending, due(-5*minute)), relays: alive("a")},
			why:  "it has been due since 2026-01-31T11:55:00Z, 5m ago, and no relay took it yet",
			next: "relays are alive (a) and do not take it: they are too slow for what waits, or have no route for routing key charges; outboxd status shows more" + askFile,
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
			next: "relay a takes it as soon as there is room" + ifRouted + ", and sends it: attempt 2; where its destination remembers no key, or this one no longer, it ends failed (unknown) instead" + askFile,
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
