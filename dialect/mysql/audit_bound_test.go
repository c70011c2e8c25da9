package mysql

import (
	"slices"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
)

// However much there is, the audits look at the messages that their comments name, along an index.
func TestAuditsAreBounded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server testServer) {
		d := server.newDatabase(t)
		d.many(t, dialect.CountBound+5, "type, due_at", "'a', UTC_TIMESTAMP(6) - INTERVAL 1 HOUR")
		d.many(t, dialect.CountBound+5, "type, state, due_at, failed_at, reason", "'b', 'failed', '9999-12-31', UTC_TIMESTAMP(6), 'unknown'")
		d.exec(t, "ANALYZE TABLE outbox")
		db := d.connect(t, dialect.Options{})
		for name, want := range map[string]string{"oldest_due": "a a 1h0m0s 1h0m0s 10000", "versions": "a a 1 10000 0s 0", "failures": "b b unknown - 10000"} {
			if _, rows := tell(t, db, name, ""); len(rows) != 1 || !strings.HasPrefix(rows[0], want) {
				t.Errorf("%s: %q, want %s", name, rows, want)
			}
		}
		if _, rows := tell(t, db, "stuck", ""); len(rows) != 100 {
			t.Errorf("%d are stuck, want the first 100", len(rows))
		}
		d.readsNoTable(t, db)
	})
}

// readsNoTable looks at the plans: of outbox, under none of its aliases, is all read but along an index.
func (d testDatabase) readsNoTable(t *testing.T, db *DB) {
	t.Helper()
	all, err := db.Audits()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		var plan []struct {
			Table  *string `db:"table"`
			Access *string `db:"type"`
		}
		if err := d.db.Unsafe().Select(&plan, "EXPLAIN FORMAT=TRADITIONAL "+a.SQL); err != nil {
			t.Errorf("%s: %v", a.Name, err)
		}
		for _, step := range plan {
			if step.Table != nil && slices.Contains([]string{"outbox", "o", "h", "final"}, *step.Table) && *step.Access == "ALL" {
				t.Errorf("%s reads the whole table as %s", a.Name, *step.Table)
			}
		}
	}
}
