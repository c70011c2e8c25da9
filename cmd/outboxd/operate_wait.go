package main

import (
	"cmp"
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
func (p *program) follow(ctx context.Context, db operator, r request, id string) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	shown := p.newProgress("applied so far", min(r.expected, cmp.Or(r.Order.Limit, r.expected)))
	defer shown.end()
	for {
		op, err := db.Operation(ctx, id)
		if err != nil {
			return err
		}
		if op.AppliedAt != nil {
			shown.end()
			return p.outcome(r, op.Affected, op.Detail)
		}
		if op.Affected != nil {
			shown.at(int(*op.Affected))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			fmt.Fprintf(p.stderr, "not applied yet: see outboxd operations %s\n", id)
			return context.Cause(ctx)
		}
	}
}

// outcome tells how an operation ended.
func (p *program) outcome(r request, affected *int64, text *string) error {
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
		return failf(exitNotAllowed, "%s was refused: %s", r.title(), detail.Refused)
	}
	fmt.Fprintln(p.stderr, applied(r, messages(int(n), false), detail))
	return leftOut(r.Op, detail)
}

// applied says in one line what an operation did, or would do.
func applied(r request, affected string, detail relay.Detail) string {
	target := r.Order.Target().String()
	switch {
	case detail.Skipped[relay.SkipNotPaused] > 0:
		return r.title() + ": " + target + " was not paused"
	case r.Op.Steers() && r.DryRun:
		return "dry run: would " + command(r.Op) + " " + target
	case r.Op.Steers():
		return "applied"
	case r.DryRun:
		return "dry run: would change " + affected + skipped(detail.Skipped)
	}
	return "applied: " + affected + skipped(detail.Skipped)
}

// leftOut is the error where somebody has to look at what an operation left as it is.
func leftOut(op relay.Op, detail relay.Detail) error {
	var parts []string
	for _, s := range []struct {
		why  relay.Skip
		mend string
	}{
		{relay.SkipUnknown, "may have taken effect already: look at the receiver, then ask again with --force"},
		{relay.SkipChanged, "changed since their payloads were read: look at them, and correct again"},
		{relay.SkipLocked, "locked by another session: ask again"},
		{relay.SkipRefused, "refused by a constraint or a trigger of the database: look at its log"},
		{relay.SkipUnmatched, "named by an id that no message has which " + command(op) + " is for"},
	} {
		if n := detail.Skipped[s.why]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s.mend))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return failf(exitPartly, "left out: %s", strings.Join(parts, "; "))
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
