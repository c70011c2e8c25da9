package main

import (
	"context"
	"fmt"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// preview tells what an operation would do, and asks a person whether it should.
func (p *program) preview(ctx context.Context, db database, r *request, memory dialect.Memory) (goOn bool, err error) {
	what := r.Order.Target().String()
	if r.Op.Steers() {
		if err := p.warnOfTarget(ctx, db, *r); err != nil {
			return false, err
		}
	} else {
		found, err := p.count(ctx, db, *r, memory)
		if err != nil {
			return false, filterError(err)
		}
		if found.Affected == 0 {
			return false, p.nothing(*r, found)
		}
		if r.expected = found.Affected; found.More {
			r.expected = r.Order.Limit
		}
		what = messages(found.Affected, found.More) + skipped(found.Skipped) + doubtful(found.Doubtful)
	}
	fmt.Fprintf(p.stderr, "%s: %s\n", r.title(), what)
	if r.yes || r.DryRun {
		return true, nil
	}
	return true, p.confirm()
}

// count looks what an operation on messages would do.
func (p *program) count(ctx context.Context, db database, r request, memory dialect.Memory) (dialect.Preview, error) {
	if r.correcting != nil {
		return p.lookAtPayloads(ctx, db, r)
	}
	return db.Preview(ctx, r.Operation, memory)
}

// memory is what the configuration says of the destination of a routing key: dialect.Memory.
func (l *loaded) memory(routingKey string) (dedupe relay.Dedupe, known bool) {
	i := l.config.routeOf(routingKey)
	if i < 0 {
		return relay.Dedupe{}, false
	}
	return l.config.Destinations[l.config.Routes[i].To].dedupe(), true
}

// doubtful says of messages of a replay that a relay may leave them out, and what a person can do about it.
func doubtful(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; may be left out: %d may have taken effect already, and whether the receiver still remembers the key, only the "+
		"configuration says: add -c FILE, or look at the receiver", n)
}

// named is how many ids a command line names.
func (r request) named() int {
	if r.correcting != nil {
		return len(r.correcting.ids)
	}
	return len(r.Order.IDs)
}

// nothing is the end of a command that finds nothing to change.
func (p *program) nothing(r request, found dialect.Preview) error {
	unmatched := found.Skipped[relay.SkipUnmatched]
	switch {
	case unmatched > 0 && unmatched == r.named():
		return failf(exitNotFound, "no message has such an id and fits the filter: nothing was asked for")
	case r.requireMatch:
		return failf(exitNoMatch, "%s: no messages%s: nothing was asked for", r.title(), skipped(found.Skipped))
	}
	fmt.Fprintf(p.stderr, "%s: no messages%s: nothing was asked for\n", r.title(), skipped(found.Skipped))
	return nil
}
