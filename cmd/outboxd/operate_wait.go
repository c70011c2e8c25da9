package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// followEvery is between looks at an operation that is waited for.
const followEvery = 200 * time.Millisecond

// follow waits until an operation is applied, and tells what came of it. Where something was left out that a person should
// look at, the exit code says so.
func (p *program) follow(ctx context.Context, db operator, id string) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		op, err := db.Operation(ctx, id)
		if err != nil {
			return err
		}
		if op.AppliedAt != nil {
			return p.outcome(relay.Op(op.Op), op.Affected, op.Detail)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			fmt.Fprintf(p.stderr, "not applied yet: see outboxd operations\n")
			return context.Cause(ctx)
		}
	}
}

// outcome tells how an operation ended.
func (p *program) outcome(op relay.Op, affected *int64, text *string) error {
	var detail relay.Detail
	if text != nil {
		if err := json.Unmarshal([]byte(*text), &detail); err != nil {
			return fmt.Errorf("detail of the operation: %w", err)
		}
	}
	var n int64
	if affected != nil {
		n = *affected
	}
	if detail.Refused != "" {
		return failf(exitNotAllowed, "%s was refused: %s", command(op), detail.Refused)
	}
	what := ": " + messages(int(n), false)
	if op.Steers() {
		what = ""
	}
	fmt.Fprintf(p.stderr, "applied%s%s\n", what, skipped(detail.Skipped))
	for _, why := range []relay.Skip{relay.SkipUnknown, relay.SkipLocked, relay.SkipRefused, relay.SkipUnmatched} {
		if detail.Skipped[why] > 0 {
			return failf(exitPartly, "something was left out: look at it, and ask again or use --force")
		}
	}
	return nil
}

// skipped says in brackets what was left as it is, and why.
func skipped(counts map[relay.Skip]int) string {
	if len(counts) == 0 {
		return ""
	}
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[why], why))
	}
	return " (left as they are: " + strings.Join(parts, ", ") + ")"
}
