package postgres

import (
	"regexp"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
)

// However much there is, the audits look at the messages that their comments name, along an index.
func TestAuditsAreBounded(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.exec(t, "INSERT INTO outbox (type, due_at) SELECT 'a', now() - interval '1 hour' FROM generate_series(1, $1)", dialect.CountBound+5)
	d.exec(t, "INSERT INTO outbox (type, state, due_at, failed_at, reason) SELECT 'b', 'failed', NULL, now(), 'unknown' FROM generate_series(1, $1)", dialect.CountBound+5)
	d.exec(t, "INSERT INTO outbox (type, state, due_at, done_at) SELECT 'c', 'done', NULL, now() FROM generate_series(1, 30000)")
	d.exec(t, "ANALYZE outbox")
	db := d.connect(t, dialect.Options{})
	for name, want := range map[string]string{"oldest_due": "a a 1h0m0s 1h0m0s 10000", "versions": "a a 1 10000 0s 0", "failures": "b b unknown - 10000"} {
		if _, rows := tell(t, db, name, ""); len(rows) != 1 || !strings.HasPrefix(rows[0], want) {
			t.Errorf("%s: %q, want %s", name, rows, want)
		}
	}
	if _, rows := tell(t, db, "stuck", ""); len(rows) != 100 {
		t.Errorf("%d are stuck, want the first 100", len(rows))
	}
	all, err := db.Audits()
	if err != nil {
		t.Fatal(err)
	}
	whole := regexp.MustCompile(`Seq Scan on outbox\b`) // and not one of outbox_lease
	for _, a := range all {
		var plan []string
		if err := d.db.Select(&plan, "EXPLAIN "+strings.ReplaceAll(a.SQL, "\n", " \n")); err != nil {
			t.Errorf("%s: %v", a.Name, err)
		}
		if text := strings.Join(plan, "\n"); whole.MatchString(text) {
			t.Errorf("%s reads the whole table:\n%s", a.Name, text)
		}
	}
}
