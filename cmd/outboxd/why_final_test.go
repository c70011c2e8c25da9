package main

import (
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// inFlightCases are messages under a lease.
func inFlightCases() []explained {
	lease := func(renewed time.Duration) *dialect.Lease {
		return &dialect.Lease{Relay: "a", ClaimedAt: *at(-time.Minute), RenewedAt: *at(renewed), Length: dialect.Age(30 * time.Second)}
	}
	return []explained{
		{
			name: "in flight", facts: facts{message: message(relay.InFlight), lease: lease(-3 * time.Second), relays: alive("a"), plan: toBilling()},
			why:  "relay a took it at 2026-01-31T11:59:00Z, 1m ago, and its lease of 30s, last renewed 3s ago, stands for another 27s",
			next: "the outcome is written when its send ends, which may take 20s; if the relay dies, another one takes the message back once the lease has stood still for 30s",
		},
		{
			name: "in flight, without a configuration", facts: facts{message: message(relay.InFlight), lease: lease(-3 * time.Second), relays: alive("a")},
			why:  "relay a took it at 2026-01-31T11:59:00Z, 1m ago, and its lease of 30s, last renewed 3s ago, stands for another 27s",
			next: "the outcome is written when its send ends; if the relay dies, another one takes the message back once the lease has stood still for 30s",
		},
		{
			name: "in flight again", facts: facts{
				message: message(relay.InFlight, unknown(-time.Hour), func(m *dialect.Message) { m.Lapses = 2 }),
				lease:   lease(-3 * time.Second), relays: alive("a"), plan: toBilling(),
			},
			why:  "relay a took it at 2026-01-31T11:59:00Z, 1m ago, and its lease of 30s, last renewed 3s ago, stands for another 27s; 2 leases before ended without an outcome of it; an earlier send, at 2026-01-31T11:00:00Z, 1h ago, may have taken effect",
			next: "the outcome is written when its send ends, which may take 20s; if the relay dies, another one takes the message back once the lease has stood still for 30s",
		},
		{
			name: "in flight, its relay died a moment ago", facts: facts{message: message(relay.InFlight), lease: lease(-3 * time.Second), relays: alive("b")},
			why:  "relay a took it at 2026-01-31T11:59:00Z, 1m ago, and did not tell lately that it is alive; its lease of 30s, last renewed 3s ago, stands for another 27s",
			next: "relay b takes the message back after it saw the lease stand still for 30s: pending, due at once, and one lapse more",
		},
		{
			name: "in flight, its relay died", facts: facts{message: message(relay.InFlight), lease: lease(-time.Minute), relays: alive("b")},
			why:  "relay a took it at 2026-01-31T11:59:00Z, 1m ago, and its lease of 30s, last renewed 1m ago, has stood still for longer than that",
			next: "relay b takes the message back after it saw the lease stand still for 30s: pending, due at once, and one lapse more",
		},
		{
			name: "in flight, its relay hangs, and is the only one", facts: facts{message: message(relay.InFlight), lease: lease(-time.Minute), relays: alive("a")},
			why:  "relay a took it at 2026-01-31T11:59:00Z, 1m ago, and its lease of 30s, last renewed 1m ago, has stood still for longer than that",
			next: "no other relay is alive to take the message back: start one with outboxd run, or a anew",
		},
		{
			name: "in flight, its relay hangs", facts: facts{message: message(relay.InFlight), lease: lease(-time.Minute), relays: alive("a", "b")},
			why:  "relay a took it at 2026-01-31T11:59:00Z, 1m ago, and its lease of 30s, last renewed 1m ago, has stood still for longer than that",
			next: "relay b takes the message back after it saw the lease stand still for 30s: pending, due at once, and one lapse more",
		},
		{
			name: "in flight, and no relay is alive", facts: facts{message: message(relay.InFlight), lease: lease(-time.Minute)},
			why:  "relay a took it at 2026-01-31T11:59:00Z, 1m ago, and its lease of 30s, last renewed 1m ago, has stood still for longer than that",
			next: "no relay is alive: nothing is sent until one is started with outboxd run; the one that is started takes the message back after it watched the lease for 30s",
		},
		{
			name: "in flight under no lease", facts: facts{message: message(relay.InFlight), relays: alive("b")},
			why:  "it is under a lease whose row is gone, as after a restore or a DELETE",
			next: "relay b walks slowly through the table, finds it, and makes it pending",
		},
		{
			name: "in flight under no lease, and no relay is alive", facts: facts{message: message(relay.InFlight)},
			why:  "it is under a lease whose row is gone, as after a restore or a DELETE",
			next: "no relay is alive: nothing is sent until one is started with outboxd run",
		},
	}
}

// finalCases are messages that are done or failed.
func finalCases() []explained {
	resolved := func(m *dialect.Message) { m.ResolvedAt = m.FailedAt }
	never := toBilling()
	never.dedupe = relay.Dedupe{Never: true}
	remembers := toBilling()
	remembers.remembers = true
	return []explained{
		{
			name: "done", facts: facts{message: message(relay.Finished, func(m *dialect.Message) { m.Result = new("ch_1\nx") })},
			why:  "its destination acknowledged it at 2026-01-31T11:59:00Z, 1m ago, as ch_1, after 1 attempt and 9m after it was written",
			next: "nothing: it is not sent again unless somebody replays it",
		},
		{
			name: "done in its second life", facts: facts{message: message(relay.Finished, erred(3, "http_5xx", "503"), func(m *dialect.Message) { m.Replays = 1 })},
			why:  "its destination acknowledged it at 2026-01-31T11:59:00Z, 1m ago, after 3 attempts in its life 2 and 9m after it was written",
			next: "nothing: it is not sent again unless somebody replays it",
		},
		{
			name: "exhausted", facts: facts{message: message(relay.Failed, failed(relay.Exhausted), erred(3, "http_5xx", "503")), relays: alive("a"), plan: toBilling()},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, 3 attempts had failed, and more its budget does not allow; the last: http_5xx (503)",
			next:     "replay it once its destination works, under the key of before, m1: a receiver that did the work drops it",
			commands: []string{"outboxd replay m1", `outboxd resolve m1 --note "why it needs nothing more"`},
		},
		{
			name: "exhausted, and no relay is alive", facts: facts{message: message(relay.Failed, failed(relay.Exhausted), erred(3, "http_5xx", "503"))},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, 3 attempts had failed, and more its budget does not allow; the last: http_5xx (503)",
			next:     "replay it once its destination works, under the key of before, m1" + blindKey + askFile + ". No relay is alive: an operation is applied as soon as one runs",
			commands: []string{"outboxd replay m1", `outboxd resolve m1 --note "why it needs nothing more"`},
		},
		{
			name: "exhausted, and nothing is remembered", facts: facts{message: message(relay.Failed, failed(relay.Exhausted), erred(3, "http_5xx", "503")), relays: alive("a"), plan: never},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, 3 attempts had failed, and more its budget does not allow; the last: http_5xx (503)",
			next:     "replay it once its destination works, under the key of before, m1, which its receiver does not remember: it does the work again if it did it before",
			commands: []string{"outboxd replay m1", `outboxd resolve m1 --note "why it needs nothing more"`},
		},
		{
			name: "exhausted, and resolved", facts: facts{message: message(relay.Failed, failed(relay.Exhausted), erred(3, "http_5xx", "503"), resolved), relays: alive("a")},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, 3 attempts had failed, and more its budget does not allow; the last: http_5xx (503)",
			next:     "nothing: it needs nothing more since 2026-01-31T11:59:00Z, 1m ago; a replay sends it all the same, under the key of before, m1" + blindKey + askFile,
			commands: []string{"outboxd replay m1"},
		},
		{
			name: "exhausted, an earlier send may have taken effect", facts: facts{message: message(relay.Failed, failed(relay.Exhausted), erred(3, "http_5xx", "503"), unknown(-time.Hour)), relays: alive("a"), plan: toBilling()},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, 3 attempts had failed, and more its budget does not allow; the last: http_5xx (503); an earlier send, at 2026-01-31T11:00:00Z, 1h ago, may have taken effect",
			next:     "look at its receiver for the key m1; if it did the work, resolve the message; if not, replay it, under the key of before, m1: a receiver that did the work drops it, but it may forget the key at 2026-02-01T11:00:00Z, in 23h",
			commands: []string{`outboxd resolve m1 --note "why it needs nothing more"`, "outboxd replay m1"},
		},
		{
			name: "rejected", facts: facts{message: message(relay.Failed, failed(relay.Rejected), erred(1, "http_4xx", "422 unknown currency")), relays: alive("a"), plan: toBilling()},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, its destination answered that it will never take it: http_4xx (422 unknown currency)",
			next:     "correct its payload, or replay it once its receiver takes it, under a new key: a receiver that keeps its answers gives the old one to the old key",
			commands: []string{"outboxd correct m1 --payload-file FILE --note \"what was wrong\"", "outboxd replay m1", `outboxd resolve m1 --note "why it needs nothing more"`},
		},
		{
			name: "rejected, an earlier send may have taken effect", facts: facts{message: message(relay.Failed, failed(relay.Rejected), erred(2, "http_4xx", "422"), unknown(-time.Hour)), relays: alive("a"), plan: toBilling()},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, its destination answered that it will never take it: http_4xx (422); an earlier send, at 2026-01-31T11:00:00Z, 1h ago, may have taken effect",
			next:     "look at its receiver for the key m1; if it did the work, resolve the message; if not, replay it, under a new key: a receiver that keeps its answers gives the old one to the old key; if an earlier send took effect, the work is done twice",
			commands: []string{`outboxd resolve m1 --note "why it needs nothing more"`, `outboxd replay m1 --force --note "who looked at the receiver"`},
		},
		{
			name: "rejected, for want of a permission", facts: facts{message: message(relay.Failed, failed(relay.Rejected), erred(3, "auth", "403 Forbidden")), relays: alive("a"), plan: toBilling()},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, its destination refused us the permission: auth (403 Forbidden)",
			next:     "replay it once the permission is there, under the key of before, m1: a receiver that did the work drops it",
			commands: []string{"outboxd replay m1", `outboxd resolve m1 --note "why it needs nothing more"`},
		},
		{
			name: "rejected by the relay", facts: facts{message: message(relay.Failed, failed(relay.Rejected), erred(0, "invalid", "header tenant is no string")), relays: alive("a"), plan: toBilling()},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, the relay could not send it as it is: invalid (header tenant is no string)",
			next:     "no replay mends that: let the application write it anew, and resolve this one",
			commands: []string{`outboxd resolve m1 --note "why it needs nothing more"`},
		},
		{
			name: "too large, under a key of its own", facts: facts{message: message(relay.Failed, failed(relay.TooLarge), erred(1, "too_large", "413"), func(m *dialect.Message) { m.SendID = new("k2") }), relays: alive("a")},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, it is too large for its destination: too_large (413)",
			next:     "correct its payload, or replay it once its receiver takes it, under a new key: a receiver that keeps its answers gives the old one to the old key",
			commands: []string{"outboxd correct m1 --payload-file FILE --note \"what was wrong\"", "outboxd replay m1", `outboxd resolve m1 --note "why it needs nothing more"`},
		},
		{
			name: "expired unsent", facts: facts{message: message(relay.Failed, failed(relay.Expired), erred(0, "expired", "past expires_at before it was sent"), resolved), relays: alive("a")},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, it was still unsent past its expires_at",
			next:     "nothing: it needs nothing more since 2026-01-31T11:59:00Z, 1m ago; a replay sends it all the same, under the key of before, m1" + blindKey + askFile,
			commands: []string{"outboxd replay m1"},
		},
		{
			name: "cancelled", facts: facts{message: message(relay.Failed, failed(relay.Cancelled), resolved), relays: alive("a")},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, an operator cancelled it",
			next:     "nothing: it needs nothing more since 2026-01-31T11:59:00Z, 1m ago; a replay sends it all the same, under the key of before, m1" + blindKey + askFile,
			commands: []string{"outboxd replay m1"},
		},
		{
			name: "lease lost", facts: facts{message: message(relay.Failed, failed(relay.LeaseLost), lapses(4), erred(0, "lapsed", "four leases")), relays: alive("a"), plan: toBilling()},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, four leases in a row ended without an outcome of it: sending it may kill the relay; an earlier send, at 2026-01-31T11:00:00Z, 1h ago, may have taken effect",
			next:     "look into the logs of the relays for what ended them; then look at its receiver for the key m1; if it did the work, resolve the message; if not, replay it, under the key of before, m1: a receiver that did the work drops it, but it may forget the key at 2026-02-01T11:00:00Z, in 23h",
			commands: []string{`outboxd resolve m1 --note "why it needs nothing more"`, "outboxd replay m1"},
		},
		{
			name: "unknown, within the window", facts: facts{message: message(relay.Failed, failed(relay.Unknowable), erred(3, "timeout", "no answer"), unknown(-time.Hour)), relays: alive("a"), plan: toBilling()},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, it was not sent again: timeout (no answer); nobody knows whether the send at 2026-01-31T11:00:00Z, 1h ago, took effect",
			next:     "look at its receiver for the key m1; if it did the work, resolve the message; if not, replay it, under the key of before, m1: a receiver that did the work drops it, but it may forget the key at 2026-02-01T11:00:00Z, in 23h",
			commands: []string{`outboxd resolve m1 --note "why it needs nothing more"`, "outboxd replay m1"},
		},
		{
			name: "unknown, without a configuration, under a key of its own", facts: facts{message: message(relay.Failed, failed(relay.Unknowable), erred(3, "timeout", "no answer"), unknown(-time.Hour), func(m *dialect.Message) { m.SendID = new("k2") }), relays: alive("a")},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, it was not sent again: timeout (no answer); nobody knows whether the send at 2026-01-31T11:00:00Z, 1h ago, took effect",
			next:     "look at its receiver for the key k2; if it did the work, resolve the message; if not, replay it, under the key of before, k2" + blindKey + "; a relay that knows the second by its configuration leaves the message out, unless the replay has --force" + askFile,
			commands: []string{`outboxd resolve m1 --note "why it needs nothing more"`, "outboxd replay m1"},
		},
		{
			name: "unknown, past the window", facts: facts{message: message(relay.Failed, failed(relay.Unknowable), erred(1, "dedupe", "the destination no longer remembers its key"), unknown(-25*time.Hour)), relays: alive("a"), plan: toBilling()},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, it was not sent again: dedupe (the destination no longer remembers its key); nobody knows whether the send at 2026-01-30T11:00:00Z, 25h ago, took effect",
			next:     "look at its receiver for the key m1; if it did the work, resolve the message; if not, replay it, under the key of before, which its receiver may have forgotten: it then does the work again",
			commands: []string{`outboxd resolve m1 --note "why it needs nothing more"`, `outboxd replay m1 --force --note "who looked at the receiver"`},
		},
		{
			name: "unknown, and nothing is remembered", facts: facts{message: message(relay.Failed, failed(relay.Unknowable), erred(1, "timeout", "no answer"), unknown(-time.Minute)), relays: alive("a"), plan: never},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, it was not sent again: timeout (no answer); nobody knows whether the send at 2026-01-31T11:59:00Z, 1m ago, took effect",
			next:     "look at its receiver for the key m1; if it did the work, resolve the message; if not, replay it, under the key of before, m1, which its receiver does not remember: it does the work again if it did it before",
			commands: []string{`outboxd resolve m1 --note "why it needs nothing more"`, `outboxd replay m1 --force --note "who looked at the receiver"`},
		},
		{
			name: "unknown, and failures are remembered", facts: facts{message: message(relay.Failed, failed(relay.Unknowable), erred(1, "http_5xx", "500"), unknown(-time.Minute)), relays: alive("a"), plan: remembers},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, it was not sent again: http_5xx (500); nobody knows whether the send at 2026-01-31T11:59:00Z, 1m ago, took effect",
			next:     "look at its receiver for the key m1; if it did the work, resolve the message; if not, replay it, under a new key: its receiver gives failures again to the old one; if an earlier send took effect, the work is done twice",
			commands: []string{`outboxd resolve m1 --note "why it needs nothing more"`, `outboxd replay m1 --new-key --force --note "who looked at the receiver"`},
		},
		{
			name: "rejected, and its destination said why", facts: facts{
				message: message(relay.Failed, failed(relay.Rejected), erred(1, "http_4xx", "HTTP 422 Unprocessable Entity")), relays: alive("a"), plan: toBilling(),
				attempts: []dialect.Attempt{answering(send(1, relay.WhatFail, "http_4xx", "HTTP 422 Unprocessable Entity", -time.Minute), 422, "unknown\n  currency CHF\x1b[2J")},
			},
			why:      `at 2026-01-31T11:59:00Z, 1m ago, its destination answered that it will never take it: http_4xx (HTTP 422 Unprocessable Entity); it said: unknown currency CHF\x1b[2J`,
			next:     "correct its payload, or replay it once its receiver takes it, under a new key: a receiver that keeps its answers gives the old one to the old key",
			commands: []string{"outboxd correct m1 --payload-file FILE --note \"what was wrong\"", "outboxd replay m1", `outboxd resolve m1 --note "why it needs nothing more"`},
		},
		{
			name: "expired after it was turned down", facts: facts{
				message: message(relay.Failed, failed(relay.Expired), erred(1, "expired", "past expires_at before it was sent"), resolved), relays: alive("a"), plan: toBilling(),
				attempts: []dialect.Attempt{answering(send(1, relay.WhatRetry, "http_5xx", "503", -time.Hour), 503, "later")},
			},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, it was still unsent past its expires_at",
			next:     "nothing: it needs nothing more since 2026-01-31T11:59:00Z, 1m ago; a replay sends it all the same, under the key of before, m1: a receiver that did the work drops it",
			commands: []string{"outboxd replay m1"},
		},
		{
			name: "rejected by outcomes of the configuration", facts: facts{
				message: message(relay.Failed, failed(relay.Rejected), erred(1, "not_found", "HTTP 404 Not Found, fail by the outcomes of this destination; it leads to /x")), relays: alive("a"), plan: toBilling(),
			},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, its destination answered not_found (HTTP 404 Not Found; it leads to /x), which outcomes of the configuration call fail",
			next:     "correct its payload, or replay it once its receiver takes it, under a new key: a receiver that keeps its answers gives the old one to the old key",
			commands: []string{"outboxd correct m1 --payload-file FILE --note \"what was wrong\"", "outboxd replay m1", `outboxd resolve m1 --note "why it needs nothing more"`},
		},
		{
			name: "rejected by the limit of outcomes of the configuration", facts: facts{
				message: message(relay.Failed, failed(relay.Rejected), erred(2, "http_4xx", "HTTP 418 I'm a teapot, retry by the outcomes of this destination")), relays: alive("a"), plan: toBilling(),
			},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, 2 attempts had failed, and outcomes of the configuration allow no more; the last: http_4xx (HTTP 418 I'm a teapot), which outcomes of the configuration call retry",
			next:     "correct its payload, or replay it once its receiver takes it, under a new key: a receiver that keeps its answers gives the old one to the old key",
			commands: []string{"outboxd correct m1 --payload-file FILE --note \"what was wrong\"", "outboxd replay m1", `outboxd resolve m1 --note "why it needs nothing more"`},
		},
		{
			name: "unknown by outcomes of the configuration, with an aggregateid", facts: facts{
				message: message(relay.Failed, failed(relay.Unknowable), erred(3, "other", "exit code 7, unknown by the outcomes of this destination: no luck"), unknown(-time.Hour), func(m *dialect.Message) { m.AggregateID = new("4711\n8") }),
				relays:  alive("a"), plan: never,
			},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, it was not sent again: other (exit code 7: no luck), which outcomes of the configuration call unknown; nobody knows whether the send at 2026-01-31T11:00:00Z, 1h ago, took effect",
			next:     "look at its receiver for the key m1, or for the aggregateid 4711; if it did the work, resolve the message; if not, replay it, under the key of before, m1, which its receiver does not remember: it does the work again if it did it before",
			commands: []string{`outboxd resolve m1 --note "why it needs nothing more"`, `outboxd replay m1 --force --note "who looked at the receiver"`},
		},
		{
			name: "exhausted, and its key is forgotten", facts: facts{
				message: message(relay.Failed, failed(relay.Exhausted), erred(3, "http_5xx", "503"), func(m *dialect.Message) { m.FailedAt = at(-25 * time.Hour) }), relays: alive("a"), plan: toBilling(),
			},
			why:      "at 2026-01-30T11:00:00Z, 25h ago, 3 attempts had failed, and more its budget does not allow; the last: http_5xx (503)",
			next:     "replay it once its destination works, under the key of before, m1, which its receiver may have forgotten: it does the work again if it did it before",
			commands: []string{"outboxd replay m1", `outboxd resolve m1 --note "why it needs nothing more"`},
		},
		{
			name: "exhausted, and no route of the configuration takes it", facts: facts{message: message(relay.Failed, failed(relay.Exhausted), erred(3, "http_5xx", "503")), relays: alive("a"), plan: &plan{}},
			why:      "at 2026-01-31T11:59:00Z, 1m ago, 3 attempts had failed, and more its budget does not allow; the last: http_5xx (503)",
			next:     "replay it once its destination works, under the key of before, m1" + blindKey + "; no route of this configuration takes routing key charges, so nobody knows here how long its destination remembers keys",
			commands: []string{"outboxd replay m1", `outboxd resolve m1 --note "why it needs nothing more"`},
		},
		{
			name: "done by outcomes of the configuration", facts: facts{
				message: message(relay.Finished), attempts: []dialect.Attempt{answering(send(1, relay.WhatDone, "", "", -time.Minute), 409, "there already")},
			},
			why:  "its destination answered HTTP 409, which outcomes of the configuration call done, at 2026-01-31T11:59:00Z, 1m ago, after 1 attempt and 9m after it was written",
			next: "nothing: it is not sent again unless somebody replays it",
		},
		{
			name: "a program's code that is done by outcomes of the configuration", facts: facts{
				message: message(relay.Finished), attempts: []dialect.Attempt{answering(send(1, relay.WhatDone, "", "", -time.Minute), 3, "there already")},
			},
			why:  "its destination answered exit code 3, which outcomes of the configuration call done, at 2026-01-31T11:59:00Z, 1m ago, after 1 attempt and 9m after it was written",
			next: "nothing: it is not sent again unless somebody replays it",
		},
		{
			name: "done, with a long answer", facts: facts{
				message: message(relay.Finished), attempts: []dialect.Attempt{answering(send(1, relay.WhatDone, "", "", -time.Minute), 201, "much")},
			},
			why:  "its destination acknowledged it at 2026-01-31T11:59:00Z, 1m ago, after 1 attempt and 9m after it was written",
			next: "nothing: it is not sent again unless somebody replays it",
		},
		{
			name: "a text that would move the cursor", facts: facts{message: message(relay.Failed, failed(relay.Rejected), erred(1, "http_4xx", "\x1b[2Jx\u009b1A\u202eeng\x00")), relays: alive("a"), plan: toBilling()},
			why:      `at 2026-01-31T11:59:00Z, 1m ago, its destination answered that it will never take it: http_4xx (\x1b[2Jx\u009b1A\u202eeng\x00)`,
			next:     "correct its payload, or replay it once its receiver takes it, under a new key: a receiver that keeps its answers gives the old one to the old key",
			commands: []string{"outboxd correct m1 --payload-file FILE --note \"what was wrong\"", "outboxd replay m1", `outboxd resolve m1 --note "why it needs nothing more"`},
		},
	}
}
