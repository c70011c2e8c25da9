package postgres

import (
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
