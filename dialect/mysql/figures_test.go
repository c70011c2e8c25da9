package mysql

import (
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
func crowd(t *testing.T, b backend, n int) *Store {
	t.Helper()
	const batch = 20_000
	for i := 0; i < n; i += batch {
		b.many(t, min(batch, n-i), "aggregatetype, type, state, due_at, done_at, attempts",
			"'orders', CONCAT('type_', b.n % 20), 'done', '9999-12-31', UTC_TIMESTAMP(6), 1")
		b.many(t, min(batch, n-i), "aggregatetype, type, due_at",
			"'orders', CONCAT('type_', b.n % 20), UTC_TIMESTAMP(6) - INTERVAL 1 HOUR + INTERVAL a.n * 1000 + b.n MICROSECOND")
	}
	b.many(t, 15_000, "aggregatetype, type, state, reason, due_at, failed_at, resolved_at",
		"'orders', CONCAT('type_', b.n % 20), 'failed', 'cancelled', '9999-12-31', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)")
	b.many(t, 100, "aggregatetype, type, state, reason, due_at, failed_at",
		"'orders', CONCAT('type_', b.n % 20), 'failed', 'rejected', '9999-12-31', UTC_TIMESTAMP(6) - INTERVAL 1 DAY")
	s := b.store("a")
	if claims := claim(t, s, relay.Quota{RoutingKey: "orders", Limit: 500}); len(claims) != 500 {
		t.Fatalf("%d messages claimed", len(claims))
	}
	return s
}

// TestFigures: what figures are made of reads a bounded number of messages by an index, however many there are, before and after
// the server has looked at the table; and they are right.
func TestFigures(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		const limit = 1000
		b.exec(t, "ALTER TABLE outbox STATS_AUTO_RECALC = 0")
		n := rowsOfFigures()
		s := crowd(t, b, n)
		query, args := textDepths, figureTexts().DepthArgs("orders", limit)
		texts := map[string]struct {
			query string
			args  []any
			most  int // rows that the server reads, with those of its temporary tables
		}{
			"depths":     {query, args, 4 * limit},
			"in flight":  {textFlying, []any{limit}, 6 * 500},
			"unresolved": {textUnresolved, []any{limit}, 5 * 20_000}, // entries of the index, twice, and the temporary tables of them
		}
		for _, stage := range []string{"filled", "analysed"} {
			if stage == "analysed" {
				b.exec(t, "ANALYZE TABLE outbox")
			}
			for name, text := range texts {
				plan, err := explain(t.Context(), s.keep.pool, "EXPLAIN FORMAT = TRADITIONAL "+inSchema(t, b, text.query), text.args...)
				if err != nil {
					t.Fatalf("explain %s: %v", name, err)
				}
				for _, step := range plan {
					if slices.Contains([]string{"o", "outbox"}, step.table) && slices.Contains([]string{"ALL", "index"}, step.access) {
						t.Errorf("%s, table %s: all messages are read: %+v", name, stage, plan)
					}
				}
				if read := reads(t, b, s, text.query, text.args...); read == 0 || read > text.most {
					t.Errorf("%s, table %s: %d rows were read, want %d at most", name, stage, read, text.most)
				}
			}
		}
		right(t, s, n)
	})
}

func inSchema(t *testing.T, b backend, query string) string {
	t.Helper()
	text, err := render(query, b.schema)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// reads executes a query of a relay, and gives how many rows the server read for it.
func reads(t *testing.T, b backend, s *Store, query string, args ...any) (rows int) {
	t.Helper()
	session, err := s.keep.pool.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	count := func() (n int) {
		counters, err := session.QueryxContext(t.Context(), "SHOW SESSION STATUS LIKE 'Handler_read%'")
		if err != nil {
			t.Fatal(err)
		}
		err = readAll(counters, func(row *sqlx.Rows) error {
			var name string
			var value int
			err := row.Scan(&name, &value)
			n += value
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	result, err := session.QueryxContext(t.Context(), inSchema(t, b, query), args...)
	if err != nil {
		t.Fatal(err)
	}
	if err := readAll(result, func(*sqlx.Rows) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return count() - before
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
	eachServer(t, func(t *testing.T, b backend) {
		snapshot := func() *time.Duration {
			t.Helper()
			totals, err := b.store("a").Totals(t.Context(), 10) // of a session that has the rights of now
			if err != nil {
				t.Fatal(err)
			}
			return totals.Snapshot
		}
		if age := snapshot(); age != nil {
			t.Errorf("without a right to it the age is %v", *age)
		}
		b.exec(t, "GRANT PROCESS ON *.* TO "+b.schema)
		tx, err := b.db.Beginx()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.Exec("INSERT INTO outbox (type) VALUES ('a')"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the age of a transaction", func() bool { age := snapshot(); return age != nil && *age > 0 && *age < time.Hour })
	})
}
