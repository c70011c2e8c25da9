package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/dialecttest"
)

func TestInspector(t *testing.T) {
	t.Parallel()
	dialecttest.TestInspector(t, func(t *testing.T) dialecttest.Backend { return seen{newDatabase(t), t} })
}

// known is a schema in the state of the suite.
func known(t *testing.T) (testDatabase, *DB) {
	t.Helper()
	d := newDatabase(t)
	dialecttest.Fill(t, seen{d, t})
	return d, d.connect(t, dialect.Options{})
}

// seen is a schema that people look at.
type seen struct {
	testDatabase
	t *testing.T
}

func (s seen) Open() dialecttest.DB { return s.connect(s.t, dialect.Options{}) }
func (s seen) SQL() *sqlx.DB        { return s.db }

// Counting looks in transactions that count for themselves: a scan of a table by its rows, one of an index by its entries. What
// parallel workers read they count elsewhere, so there are none.
func (s seen) Counting() dialecttest.Counted {
	db, total := s.connect(s.t, dialect.Options{}), 0
	db.Read = func(ctx context.Context, f func(sqlx.ExtContext) error) error {
		return db.transaction(ctx, db.keep, func(tx *sqlx.Tx) error {
			var before, after int
			count := "SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(oid)), 0)::bigint FROM pg_class WHERE relnamespace = '" + s.schema + "'::regnamespace"
			if _, err := tx.ExecContext(ctx, "SET LOCAL max_parallel_workers_per_gather = 0"); err != nil {
				return err
			}
			err := errors.Join(tx.GetContext(ctx, &before, count), f(tx), tx.GetContext(ctx, &after, count))
			total += after - before
			return err
		})
	}
	return dialecttest.Counted{DB: db, Rows: func() int { return total }}
}

func TestSize(t *testing.T) {
	t.Parallel()
	dialecttest.TestSize(t, seen{newDatabase(t), t})
}

func (s seen) Reader() dialecttest.DB {
	s.t.Helper()
	reader := s
	reader.url = s.with(s.t, "role=outbox_reader")
	return reader.Open()
}

func (s seen) Forms() dialecttest.Forms {
	interval := func(d time.Duration) string { return fmt.Sprintf("interval '%d us'", d.Microseconds()) }
	return dialecttest.Forms{
		Outbox:   s.schema + ".outbox",
		UUIDs:    true,
		Now:      "now()",
		Plus:     func(at string, d time.Duration) string { return at + " + " + interval(d) },
		Never:    "NULL",
		Duration: interval,
		Array:    func(json string) string { return "ARRAY(SELECT json_array_elements_text('" + json + "'))" },
		Held:     func(ids ...string) string { return "'{" + strings.Join(ids, ",") + "}'::uuid[]" },
		Many: func(n int, columns, values string) string {
			return fmt.Sprintf("INSERT INTO outbox (%s) SELECT %s FROM generate_series(1, %d)", columns, values, n)
		},
		Analyze:    "ANALYZE outbox",
		Value:      func(_ string, value any) any { return value },
		OtherIndex: "DROP INDEX outbox_due; CREATE INDEX outbox_due ON outbox (state)",
		NoWrite:    dialect.ReadOnly,
	}
}

// wholeOutbox is a sequential scan of outbox, and not one of outbox_lease.
var wholeOutbox = regexp.MustCompile(`Seq Scan on outbox\b`)

func (s seen) ReadsAll(a dialect.Audit) string {
	s.t.Helper()
	var plan []string
	if err := s.db.Select(&plan, "EXPLAIN "+strings.ReplaceAll(a.SQL, "\n", " \n")); err != nil {
		s.t.Errorf("%s: %v", a.Name, err)
	}
	if text := strings.Join(plan, "\n"); wholeOutbox.MatchString(text) {
		return text
	}
	return ""
}
