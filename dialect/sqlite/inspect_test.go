package sqlite

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/dialecttest"
)

func TestInspector(t *testing.T) {
	t.Parallel()
	dialecttest.TestInspector(t, func(t *testing.T) dialecttest.Backend { return seen{newFile(t), t} })
}

// seen is a file that people look at.
type seen struct {
	testFile
	t *testing.T
}

func (s seen) Open() dialecttest.DB   { return s.open(s.t, dialect.Options{}) }
func (s seen) Reader() dialecttest.DB { return s.Open() }
func (s seen) SQL() *sqlx.DB          { return s.app }

// Counting counts nothing: SQLite does not tell how much it read. Its queries name their index.
func (s seen) Counting() dialecttest.Counted { return dialecttest.Counted{DB: s.Open()} }

func TestSize(t *testing.T) {
	t.Parallel()
	dialecttest.TestSize(t, seen{newFile(t), t})
}

func (s seen) Forms() dialecttest.Forms {
	micros := func(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }
	return dialecttest.Forms{
		Outbox:   "outbox",
		Now:      sqlNow,
		Plus:     func(at string, d time.Duration) string { return at + " + " + micros(d) },
		Never:    "NULL",
		Duration: micros,
		Array:    func(json string) string { return "'" + json + "'" },
		Held: func(ids ...string) string {
			return "(SELECT json_group_array(seq) FROM outbox WHERE id IN ('" + strings.Join(ids, "', '") + "'))"
		},
		Many: func(n int, columns, values string) string {
			return fmt.Sprintf("WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < %d) INSERT INTO outbox (%s) SELECT %s FROM g", n, columns, values)
		},
		Value:      value,
		OtherIndex: "DROP INDEX outbox_due; CREATE INDEX outbox_due ON outbox (state)",
		NoWrite:    dialect.ReadOnly,
	}
}

// value makes times of texts and booleans of numbers: SQLite has neither.
func value(column string, v any) any {
	if text, ok := v.(string); ok {
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			return at
		}
	}
	if column == "dry_run" {
		return v == int64(1)
	}
	return v
}

func (s seen) ReadsAll(a dialect.Audit) string {
	s.t.Helper()
	plan, err := dialect.Ask(s.t.Context(), s.app, "EXPLAIN QUERY PLAN "+a.SQL, sql.Named("outbox_id", nil))
	if err != nil {
		s.t.Errorf("%s: %v", a.Name, err)
	}
	for _, step := range plan.Rows {
		// A scan of outbox itself is that of the newest ones, which ends at its LIMIT.
		what, _ := step[3].(string)
		if newest := strings.Contains(a.SQL, "FROM outbox ORDER BY seq DESC LIMIT"); what == "SCAN o" || what == "SCAN outbox" && !newest {
			return what
		}
	}
	return ""
}
