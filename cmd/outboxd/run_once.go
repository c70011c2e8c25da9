package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// stillWaiting is the end of run --once: nothing is left, or exit code 8 with what still waits and why.
func stillWaiting(ctx context.Context, db inspector, routes []relay.Route) error {
	waiting, err := db.Waiting(ctx)
	if err != nil {
		return failf(exitDatabase, "what still waits is not known: %w", err)
	}
	total, more := 0, false
	var parts []string
	for _, w := range waiting {
		total += w.Messages
		more = more || w.More
		parts = append(parts, fmt.Sprintf("%s of %s %s", count(w.Messages, w.More), w.RoutingKey, reason(w, routes)))
	}
	if total == 0 {
		return nil
	}
	return failf(exitPartly, "%s left: %s; see outboxd list --state pending", messages(total, more), strings.Join(parts, ", "))
}

// reason says what messages wait for, in words.
func reason(w dialect.Waits, routes []relay.Route) string {
	routed := false
	for _, r := range routes {
		routed = routed || matches(r.Match, w.RoutingKey)
	}
	switch {
	case w.Why == dialect.InFlight:
		return "in flight at another relay"
	case !routed:
		return "without a route"
	case w.Why == dialect.Due:
		return "due, since their destination is paused or does not take them"
	case w.Why == dialect.Delayed:
		return "delayed by the application"
	case w.Why == dialect.Retrying:
		return "before their next try"
	case w.Why == dialect.NoPolicy:
		return "without a policy for their type or version"
	}
	return string(w.Why)
}
