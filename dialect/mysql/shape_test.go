package mysql

import (
	"errors"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
)

func TestCheckShape(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		sql  string
		kind error  // nil: accepted
		says string // in the error
	}{
		{"a further column", "ALTER TABLE outbox ADD tenant varchar(20)", nil, ""},
		{"a further index", "CREATE INDEX mine ON outbox (type)", nil, ""},
		{"a column missing", "ALTER TABLE outbox DROP send_id", dialect.ErrShape, "no column send_id"},
		{"a column of another type", "ALTER TABLE outbox_attempt MODIFY life bigint NOT NULL", dialect.ErrShape, "column life of table outbox_attempt is bigint and must be int"},
		{"a time of whole seconds", "ALTER TABLE outbox_lease DROP CONSTRAINT outbox_lease_times_check, MODIFY renewed_at datetime NOT NULL", dialect.ErrShape, "is datetime(0) and must be datetime(6)"},
		{"a text that knows no case", "ALTER TABLE outbox_control MODIFY name varchar(400) COLLATE utf8mb4_general_ci NOT NULL", dialect.ErrShape, "column name of table outbox_control is varchar(400) utf8mb4_general_ci and must be varchar(400) utf8mb4_"},
		{"a table missing", "DROP TABLE outbox_control", dialect.ErrShape, "table outbox_control is missing: run outboxd migrate up"},
		{"no transactions", "ALTER TABLE outbox_attempt ENGINE = MyISAM", dialect.ErrShape, "table outbox_attempt is MyISAM and must be of the engine InnoDB: run ALTER TABLE outbox_attempt ENGINE = InnoDB"},
		{"the claim's index missing", "DROP INDEX outbox_due ON outbox", dialect.ErrShape, "index outbox_due"},
		{"the claim's index on the state", "DROP INDEX outbox_due ON outbox; CREATE INDEX outbox_due ON outbox (state, due_at)", dialect.ErrShape, "(routing_key, lapses, due_at, seq)"},
		{"the claim's index on a part", "DROP INDEX outbox_due ON outbox; CREATE INDEX outbox_due ON outbox (routing_key(10), lapses, due_at, seq)", dialect.ErrShape, "index outbox_due"},
		{"the claim's index hidden", "ALTER TABLE outbox ALTER INDEX outbox_due /*!80017 INVISIBLE */ /*M!100600 IGNORED */", dialect.ErrShape, "index outbox_due"},
		{"ids not unique", "DROP INDEX outbox_id_key ON outbox; CREATE INDEX outbox_id_key ON outbox (id)", dialect.ErrShape, "index outbox_id_key"},
		{"a constraint missing", "ALTER TABLE outbox DROP CONSTRAINT outbox_due_check", dialect.ErrShape, "outbox_due_check"},
		{"another default", "ALTER TABLE outbox ALTER due_at SET DEFAULT (CURRENT_TIMESTAMP(6))", dialect.ErrShape, "UTC_TIMESTAMP(6)"},
	}
	onBoth(t, func(t *testing.T, s testServer) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				d := s.newDatabase(t)
				d.exec(t, c.sql)
				err := d.connect(t, dialect.Options{}).CheckShape(t.Context())
				if !errors.Is(err, c.kind) || err != nil && !strings.Contains(err.Error(), c.says) {
					t.Errorf("CheckShape: %v, want %v and %q", err, c.kind, c.says)
				}
			})
		}
	})
}

// A constraint can be switched off on MySQL, and is as good as missing then.
func TestCheckShapeNotEnforced(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		if s.name != "MySQL" {
			t.Skip("MariaDB cannot switch a constraint off")
		}
		d := s.newDatabase(t)
		d.exec(t, "ALTER TABLE outbox ALTER CHECK outbox_due_check NOT ENFORCED")
		err := d.connect(t, dialect.Options{}).CheckShape(t.Context())
		if !errors.Is(err, dialect.ErrShape) || !strings.Contains(err.Error(), "outbox_due_check") {
			t.Errorf("CheckShape: %v, want dialect.ErrShape and the constraint", err)
		}
	})
}

func TestWalksIndex(t *testing.T) {
	t.Parallel()
	due := planStep{table: "outbox", access: "range", index: "outbox_due", extra: "Using where"}
	with := func(change func(*planStep)) planStep {
		step := due
		change(&step)
		return step
	}
	cases := []struct {
		name string
		plan []planStep
		want bool
	}{
		{"a range", []planStep{due}, true},
		{"a sort", []planStep{with(func(s *planStep) { s.extra = "Using where; Using filesort" })}, false},
		{"a table between", []planStep{with(func(s *planStep) { s.extra = "Using temporary" })}, false},
		{"another index", []planStep{with(func(s *planStep) { s.index = "PRIMARY" })}, false},
		{"the whole index", []planStep{with(func(s *planStep) { s.access = "index" })}, false},
		{"two tables", []planStep{due, due}, false},
		{"none", nil, false},
	}
	for _, c := range cases {
		if got := walksIndex(c.plan); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
