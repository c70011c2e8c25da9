package postgres

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// rowsOfFigures is how many messages are done, and how many wait.
func rowsOfFigures() int {
	if os.Getenv("OUTBOXD_TEST_SLOW") == "1" {
		return 1_000_000
	}
	return 20_000
}

// crowd makes a table with so many messages done and so many waiting, of 20 types, some in flight, and some failed, of which
// those that nobody resolved are older than thousands that were.
func crowd(t *testing.T, n int) (postgresBackend, *Store) {
	t.Helper()
	b := newServer(t, false).backend(t)
	b.exec(t, `INSERT INTO outbox (aggregatetype, type, state, due_at, done_at, attempts)
		SELECT 'orders', 'type_' || g % 20, 'done', NULL, now(), 1 FROM generate_series(1, $1::int) g`, n)
	b.exec(t, `INSERT INTO outbox (aggregatetype, type, due_at)
		SELECT 'orders', 'type_' || g % 20, now() - interval '1 hour' + g * interval '1 ms' FROM generate_series(1, $1::int) g`, n)
	b.exec(t, `INSERT INTO outbox (aggregatetype, type, state, reason, due_at, failed_at, resolved_at)
		SELECT 'orders', 'type_' || g % 20, 'failed', 'cancelled', NULL, now(), now() FROM generate_series(1, 25000) g`)
	b.exec(t, `INSERT INTO outbox (aggregatetype, type, state, reason, due_at, failed_at)
		SELECT 'orders', 'type_' || g % 20, 'failed', 'rejected', NULL, now() - interval '1 day' FROM generate_series(1, 100) g`)
	s := b.postgres("a")
	claim(t, s, relay.Quota{RoutingKey: "orders", Limit: 500})
	return b, s
}

// TestFigures: what figures are made of reads a bounded number of messages by an index, however many there are, before and after
// the server has looked at the table; and they are right.
func TestFigures(t *testing.T) {
	t.Parallel()
	const limit = 1000
	n := rowsOfFigures()
	b, s := crowd(t, n)
	query, args := textDepths, figureTexts().DepthArgs("orders", limit)
	texts := map[string]struct {
		query string
		args  []any
		most  float64 // messages that it looks at
	}{
		"depths":     {query, args, limit},
		"in flight":  {textFlying, []any{limit}, 500},
		"unresolved": {textUnresolved, []any{limit}, 100},
	}
	for _, stage := range []string{"filled", "analysed"} {
		if stage == "analysed" {
			b.exec(t, "VACUUM ANALYZE outbox")
			b.exec(t, "VACUUM ANALYZE outbox_lease")
		}
		for name, text := range texts {
			looked, scans := looksAt(t, s, text.query, text.args...)
			if looked == 0 || looked > text.most {
				t.Errorf("%s, table %s: %g messages were looked at, want %g at most; by %v", name, stage, looked, text.most, scans)
			}
			byIndex := func(scan string) bool {
				return scan == "Index Scan" || scan == "Index Only Scan" || stage == "filled" && scan == "Bitmap Heap Scan"
			}
			if slices.ContainsFunc(scans, func(scan string) bool { return !byIndex(scan) }) {
				t.Errorf("%s, table %s: scans are %v", name, stage, scans)
			}
		}
	}
	right(t, s, n)
}

// ranNode is a part of a plan that was executed.
type ranNode struct {
	Type    string  `json:"Node Type"`
	Table   string  `json:"Relation Name"`
	Rows    float64 `json:"Actual Rows"`
	Loops   float64 `json:"Actual Loops"`
	Removed float64 `json:"Rows Removed by Filter"`
	Plans   []ranNode
}

// looksAt executes a query of a relay, and gives how many messages it looked at, and how.
func looksAt(t *testing.T, s *Store, query string, args ...any) (messages float64, scans []string) {
	t.Helper()
	text, err := s.Inspector.Render(query)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	if err := sqlx.SelectContext(t.Context(), s.keep.pool, &told, "EXPLAIN (ANALYZE, FORMAT JSON) "+text, args...); err != nil {
		t.Fatalf("%v in %s", err, query)
	}
	var plans []struct{ Plan ranNode }
	if err := json.Unmarshal([]byte(told[0]), &plans); err != nil {
		t.Fatal(err)
	}
	var look func(n ranNode)
	look = func(n ranNode) {
		if n.Table == "outbox" {
			messages += (n.Rows + n.Removed) * n.Loops
			scans = append(scans, n.Type)
		}
		for _, below := range n.Plans {
			look(below)
		}
	}
	look(plans[0].Plan)
	return messages, scans
}

// right demands the figures of a crowd, and with OUTBOXD_TEST_SLOW=1 that they are quick.
func right(t *testing.T, s *Store, n int) {
	t.Helper()
	var took []time.Duration
	for range 20 {
		began := time.Now()
		totals, err := s.Totals(t.Context(), 5000)
		if err != nil {
			t.Fatal(err)
		}
		depths, err := s.Depths(t.Context(), []string{"orders", "nothing"}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
		flying, failed, pending := 0, 0, 0
		for _, n := range totals.InFlight {
			flying += n
		}
		for _, n := range totals.Failed {
			failed += n
		}
		for _, d := range depths {
			pending += d.Pending
			if !d.More || d.Oldest < time.Hour-time.Minute || d.Oldest > 2*time.Hour {
				t.Fatalf("a depth is %+v", d)
			}
		}
		if flying != 500 || failed != 100 || pending != 1000 || len(depths) != 20 {
			t.Fatalf("%d in flight, %d failed, %d pending of %d types; want 500, 100, 1000 of 20", flying, failed, pending, len(depths))
		}
	}
	slices.Sort(took)
	t.Logf("%d done and %d waiting: the figures took %v, %v at least and %v at most", n, n, took[len(took)/2], took[0], took[len(took)-1])
	if os.Getenv("OUTBOXD_TEST_SLOW") == "1" && took[len(took)/2] > 100*time.Millisecond {
		t.Errorf("the figures took %v, want 100 ms at most", took[len(took)/2])
	}
}

// TestFigures_Snapshot: the age of the oldest transaction is told to who may see it, and to nobody else.
func TestFigures_Snapshot(t *testing.T) {
	t.Parallel()
	server := newServer(t, false)
	b := server.backend(t)
	s := b.postgres("a")
	snapshot := func() *time.Duration {
		t.Helper()
		totals, err := s.Totals(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		return totals.Snapshot
	}
	if age := snapshot(); age != nil {
		t.Errorf("without a right to it the age is %v", *age)
	}
	b.exec(t, "GRANT pg_monitor TO "+userOf(t, server.relay.URL))
	tx, err := b.db.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec("INSERT INTO outbox (type) VALUES ('a')"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the age of a transaction", func() bool { age := snapshot(); return age != nil && *age > 0 })
}
