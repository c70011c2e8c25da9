package main

import (
	"slices"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
)

func TestProblems(t *testing.T) {
	t.Parallel()
	age := func(d time.Duration) dialect.Age { return dialect.Age(d) }
	alive := []dialect.RelayStatus{{Name: "a", Host: "h", ConfigHash: "1", SeenFor: age(time.Second)}}
	routes := []routeConfig{{Match: "orders", To: "out"}, {Match: "mail*", To: "mails"}}
	due := []dialect.Waits{
		{RoutingKey: "orders", Why: dialect.Due, Messages: 9, Oldest: age(time.Hour)}, {RoutingKey: "mail.a", Why: dialect.Due, Messages: 1, Oldest: age(time.Hour)},
	}
	const (
		ordersDue = "9 messages of routing key orders are due, the oldest for 1h0m0s: no relay has a route for them, or the relays are too slow"
		mailDue   = "1 message of routing key mail.a is due, the oldest for 1h0m0s: no relay has a route for it, or the relays are too slow"
		outOpen   = "destination out is open at relay a: after 5 failures in a row only a probe goes out now and then"
		outPaused = "destination:out is paused by bob until outboxd resume"
	)
	open := func(name string) []dialect.BreakerStatus {
		return []dialect.BreakerStatus{{Relay: "a", Name: name, State: "open", Failures: 5}}
	}
	pause := func(target string) []dialect.PauseStatus {
		return []dialect.PauseStatus{{Target: target, Actor: "bob"}}
	}
	for name, c := range map[string]struct {
		status dialect.Status
		routes []routeConfig
		want   []string
	}{
		"well": {status: dialect.Status{
			Relays:   alive,
			Waiting:  []dialect.Waits{{RoutingKey: "orders", Why: dialect.Due, Messages: 9, Oldest: age(time.Second)}},
			Breakers: []dialect.BreakerStatus{{Relay: "a", Name: "out", State: "ok"}, {Relay: "a", Name: "out", State: "ramp"}},
		}, routes: routes},
		"no relay yet": {want: []string{"no relay is alive: nothing is sent until one is started with outboxd run"}},
		"relays died": {
			status: dialect.Status{Relays: []dialect.RelayStatus{{Name: "a", Host: "h1", SeenFor: age(time.Hour)}, {Name: "b", Host: "h2", SeenFor: age(2 * time.Minute)}}},
			want:   []string{"no relay is alive: nothing is sent until one is started with outboxd run; the last was b on host h2, seen 2m0s ago"},
		},
		"relays of another instance, and of none": {
			status: dialect.Status{Instance: "shop", Relays: []dialect.RelayStatus{{Name: "a"}, {Name: "b", Instance: "shop"}, {Name: "c", Instance: "test"}}},
			want: []string{
				"relay a names no instance and sends nothing: the outbox belongs to shop; give the relay that name, or see outboxd instance --help",
				"relay c is of the instance test and sends nothing: the outbox belongs to shop; give the relay that name, or see outboxd instance --help",
			},
		},
		"relays disagree": {
			status: dialect.Status{Relays: append(slices.Clone(alive), dialect.RelayStatus{Name: "b", ConfigHash: "2"})},
			want:   []string{"relays have different destinations or routes: a against b; give all of them the same configuration"},
		},
		"a destination is open": {
			status: dialect.Status{
				Relays:   alive,
				Waiting:  []dialect.Waits{{RoutingKey: "orders", Why: dialect.Due, Messages: 9, Oldest: age(time.Hour)}},
				Breakers: []dialect.BreakerStatus{{Relay: "a", Name: "out", State: "open", Failures: 5, LastError: "refused: no broker"}},
			},
			want: []string{"destination out is open at relay a: after 5 failures in a row only a probe goes out now and then; the last: refused: no broker; try outboxd dest test out"},
		},
		"the destination of some is open": {
			status: dialect.Status{Relays: alive, Waiting: due, Breakers: open("out")}, routes: routes,
			want: []string{outOpen, mailDue},
		},
		"some destination is open, and nobody knows of routes": {
			status: dialect.Status{Relays: alive, Waiting: due, Breakers: open("out")},
			want:   []string{outOpen},
		},
		"a routing key is open at its destination": {
			status: dialect.Status{Relays: alive, Waiting: due, Breakers: open("mails/mail.a")}, routes: routes,
			want: []string{"routing key mail.a at destination mails is open at relay a: after 5 failures in a row only a probe goes out now and then", ordersDue},
		},
		"a routing key is open at a destination that was its own": {
			status: dialect.Status{Relays: alive, Waiting: due[1:], Breakers: open("out/mail.a")}, routes: routes,
			want: []string{"routing key mail.a at destination out is open at relay a: after 5 failures in a row only a probe goes out now and then", mailDue},
		},
		"the destination of some is paused": {
			status: dialect.Status{Relays: alive, Waiting: due, Pauses: pause("destination:out")}, routes: routes,
			want: []string{outPaused, mailDue},
		},
		"some destination is paused, and nobody knows of routes": {
			status: dialect.Status{Relays: alive, Waiting: due, Pauses: pause("destination:out")},
			want:   []string{outPaused},
		},
		"a routing key is paused": {
			status: dialect.Status{Relays: alive, Waiting: due, Pauses: pause("routing_key:orders")}, routes: routes,
			want: []string{"routing_key:orders is paused by bob until outboxd resume", mailDue},
		},
		"everything is paused": {
			status: dialect.Status{Relays: alive, Waiting: due, Pauses: pause("everything")}, routes: routes,
			want: []string{"everything is paused by bob until outboxd resume"},
		},
		"a destination answers, and turns everything down": {
			status: dialect.Status{Relays: alive, Breakers: []dialect.BreakerStatus{{Relay: "a", Name: "out", State: "open", Failures: 5, LastError: "http_5xx: HTTP 503"}}},
			want:   []string{outOpen + "; the last: http_5xx: HTTP 503"},
		},
		"the credentials of a destination are not taken": {
			status: dialect.Status{Relays: alive, Breakers: []dialect.BreakerStatus{{Relay: "a", Name: "out", State: "open", Failures: 5, LastError: "auth: HTTP 401"}}},
			want:   []string{outOpen + "; the last: auth: HTTP 401; try outboxd dest test out"},
		},
		"one of its routing keys is open": {
			status: dialect.Status{Relays: alive, Breakers: []dialect.BreakerStatus{{Relay: "a", Name: "out/orders", State: "open", Failures: 7}}},
			want:   []string{"routing key orders at destination out is open at relay a: after 7 failures in a row only a probe goes out now and then"},
		},
		"a destination asked to be left alone": {
			status: dialect.Status{
				Relays:   alive,
				Waiting:  []dialect.Waits{{RoutingKey: "orders", Why: dialect.Due, Messages: 9, Oldest: age(time.Hour)}},
				Breakers: []dialect.BreakerStatus{{Relay: "a", Name: "out", State: "throttled", LastError: "HTTP 429; it asked to be left alone for 1m0s"}},
			},
			want: []string{"destination out is left alone by relay a, because it asked for that: HTTP 429; it asked to be left alone for 1m0s"},
		},
		"a relay stands by":         {status: dialect.Status{Relays: alive, Breakers: []dialect.BreakerStatus{{Relay: "a", Name: "out", State: "standby"}}}},
		"a breaker of a dead relay": {status: dialect.Status{Relays: alive, Breakers: []dialect.BreakerStatus{{Relay: "b", Name: "out", State: "open"}}}},
		"no route": {
			status: dialect.Status{Relays: alive, Waiting: []dialect.Waits{{RoutingKey: "x", Why: dialect.Due, Messages: 42}}}, routes: routes,
			want: []string{"42 messages of routing key x have no route: add one with that match to routes, and reload the relays"},
		},
		"nobody takes them": {
			status: dialect.Status{Relays: alive, Waiting: []dialect.Waits{{RoutingKey: "x", Why: dialect.Due, Messages: 10000, More: true, Oldest: age(5 * time.Minute)}}},
			want:   []string{"at least 10000 messages of routing key x are due, the oldest for 5m0s: no relay has a route for them, or the relays are too slow"},
		},
		"retrying": {
			status: dialect.Status{Relays: alive, Waiting: []dialect.Waits{{RoutingKey: "orders", Why: dialect.Retrying, Messages: 3, Oldest: age(time.Hour)}}},
			want:   []string{"3 messages of routing key orders could not be sent and wait for their next try: outboxd errors --routing-key orders shows why, outboxd why ID of one"},
		},
		"turned back and paused": {
			status: dialect.Status{Relays: alive, Waiting: []dialect.Waits{{RoutingKey: "orders", Why: dialect.NoPolicy, Messages: 1}, {RoutingKey: "orders", Why: dialect.Paused, Messages: 2}}},
			want: []string{
				"1 message of routing key orders is turned back: no policy accepts its schema version; add it to versions and reload the relays, which then send what waits",
				"2 messages of routing key orders are paused",
			},
		},
		"one of each": {
			status: dialect.Status{
				Relays: alive,
				Waiting: []dialect.Waits{
					{RoutingKey: "x", Why: dialect.Due, Messages: 1},
					{RoutingKey: "orders", Why: dialect.Retrying, Messages: 1},
					{RoutingKey: "orders", Why: dialect.Due, Messages: 1, Oldest: age(2 * time.Minute)},
				},
				Failed: []dialect.FailedCount{{Reason: "rejected", Messages: 1}},
			}, routes: routes,
			want: []string{
				"1 message of routing key x has no route: add one with that match to routes, and reload the relays",
				"1 message of routing key orders could not be sent and waits for its next try: outboxd errors --routing-key orders shows why, outboxd why ID of one",
				"1 message of routing key orders is due, the oldest for 2m0s: no relay has a route for it, or the relays are too slow",
				"1 message failed and waits for a person (1 rejected): see outboxd errors, and outboxd list --unresolved",
			},
		},
		"failed": {
			status: dialect.Status{Relays: alive, Failed: []dialect.FailedCount{{Reason: "rejected", Messages: 5}, {Reason: "exhausted", Messages: 1}, {Reason: "rejected", Messages: 1}}},
			want:   []string{"7 messages failed and wait for a person (1 exhausted, 6 rejected): see outboxd errors, and outboxd list --unresolved"},
		},
	} {
		if got := problemsOf(c.status, c.routes); !slices.Equal(got, c.want) && len(got)+len(c.want) > 0 {
			t.Errorf("%s:\n%q\nwant\n%q", name, got, c.want)
		}
	}
}
