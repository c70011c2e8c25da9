package dialecttest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// Counted is a DB that counts what it reads.
type Counted struct {
	DB
	Rows func() int // entries of indexes and rows of tables that were read so far; nil: the engine does not tell
}

// looks are what people ask for while a great many messages are there.
func looks(db DB) map[string]func(context.Context) error {
	list := func(f relay.Filter) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := db.List(ctx, f, 100, "")
			return err
		}
	}
	errors := func(f relay.Filter) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := db.Errors(ctx, f)
			return err
		}
	}
	return map[string]func(context.Context) error{
		"status": func(ctx context.Context) error {
			_, err := db.Status(ctx)
			return err
		},
		"errors":           errors(relay.Filter{}),
		"errors of a type": errors(relay.Filter{Type: "rare"}),
		"errors of a key":  errors(relay.Filter{RoutingKey: "mail"}),
		"list":             list(relay.Filter{}),
		"list pending":     list(relay.Filter{State: relay.Pending}),
		"list failed":      list(relay.Filter{State: relay.Failed, Unresolved: true}),
		"list of a type":   list(relay.Filter{Type: "rare"}),
		"list of a class":  list(relay.Filter{State: relay.Pending, RoutingKey: "orders", ErrorClass: "http_5xx"}),
		"stats": func(ctx context.Context) error {
			_, err := db.Flow(ctx, dialect.CountBound)
			return err
		},
	}
}

// TestSize holds that what people ask for reads no more rows beside more messages, and with OUTBOXD_TEST_SLOW=1 beside
// 1,000,000 that are done and 1,000,000 that wait, each in less than 100 ms.
func TestSize(t *testing.T, b Backend) {
	const small = dialect.CountBound + 1000 // more than any bound
	slow := os.Getenv("OUTBOXD_TEST_SLOW") == "1"
	more := small / 2
	if slow {
		more = 500_000 - small
	}
	f := b.Forms()
	fill := func(n int) {
		many(t, b, 2*n, "aggregatetype, type, state, due_at, done_at", fmt.Sprintf("'orders', 'paid', 'done', %s, %s", f.Never, f.Now))
		many(t, b, n, "aggregatetype, type, due_at", "'orders', 'paid', "+f.Plus(f.Now, -time.Hour))
		many(t, b, n, "aggregatetype, type, due_at", "'mail', 'welcome', "+f.Plus(f.Now, -time.Minute))
		execute(t, b, f.Analyze)
	}
	many(t, b, 500, "aggregatetype, type, state, due_at, failed_at, reason, error_class, last_error",
		fmt.Sprintf("'orders', 'paid', 'failed', %s, %s, 'exhausted', 'http_5xx', 'HTTP 503'", f.Never, f.Now))
	many(t, b, 500, "aggregatetype, type, due_at, lease_id, attempts, error_class, last_error",
		"'orders', 'paid', "+f.Plus(f.Now, time.Hour)+", 7, 1, 'http_5xx', 'HTTP 503'")
	fill(small)
	db := b.Counting()
	before := reads(t, db)
	fill(more)
	after := reads(t, db)
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if most := before[name] + before[name]/20 + 50; after[name] > most {
			t.Errorf("%s: reads %d rows, and %d beside %d messages more", name, before[name], after[name], 4*more)
		}
	}
	if slow {
		inTime(t, db, after)
	}
}

// reads is how many rows each look reads.
func reads(t *testing.T, db Counted) map[string]int {
	t.Helper()
	read := map[string]int{}
	for name, look := range looks(db) {
		from := 0
		if db.Rows != nil {
			from = db.Rows()
		}
		if err := look(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if db.Rows != nil {
			read[name] = db.Rows() - from
		}
		if db.Rows != nil && read[name] == 0 {
			t.Errorf("%s: reads nothing, as it seems", name)
		}
	}
	return read
}

// inTime holds each look to 100 ms, in the best of some tries: a busy machine is not what is measured.
func inTime(t *testing.T, db Counted, read map[string]int) {
	t.Helper()
	for name, look := range looks(db) {
		best := time.Hour
		for range 10 {
			start := time.Now()
			if err := look(t.Context()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			best = min(best, time.Since(start))
		}
		t.Logf("%s: %s, %d rows read", name, best.Round(100*time.Microsecond), read[name])
		if best > 100*time.Millisecond {
			t.Errorf("%s: %s, want less than 100 ms", name, best)
		}
	}
}
