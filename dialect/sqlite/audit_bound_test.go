package sqlite

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
)

// However much there is, the audits look at the messages that their comments name, along an index.
func TestAuditsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	const numbers = "WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < ?) "
	f.exec(t, numbers+"INSERT INTO outbox (type, due_at) SELECT 'a', "+sqlNow+" - 60 * "+minute+" FROM g", dialect.CountBound+5)
	f.exec(t, numbers+"INSERT INTO outbox (type, state, due_at, failed_at, reason) SELECT 'b', 'failed', NULL, "+sqlNow+", 'unknown' FROM g", dialect.CountBound+5)
	db := f.open(t, dialect.Options{})
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
	for _, a := range all {
		plan, err := dialect.Ask(t.Context(), f.app, "EXPLAIN QUERY PLAN "+a.SQL, sql.Named("outbox_id", nil))
		if err != nil {
			t.Errorf("%s: %v", a.Name, err)
		}
		for _, step := range plan.Rows {
			// A scan of outbox itself is that of the newest ones, which ends at its LIMIT.
			what, _ := step[3].(string)
			if newest := strings.Contains(a.SQL, "FROM outbox ORDER BY seq DESC LIMIT"); what == "SCAN o" || what == "SCAN outbox" && !newest {
				t.Errorf("%s reads the whole table: %s", a.Name, what)
			}
		}
	}
}
