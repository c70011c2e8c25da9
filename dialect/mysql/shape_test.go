package mysql

import (
	"errors"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/dialecttest"
)

func TestCheckShape(t *testing.T) {
	t.Parallel()
	shapes := []dialecttest.Shape{
		{Name: "a further column", SQL: "ALTER TABLE outbox ADD tenant varchar(20)"},
		{Name: "a further index", SQL: "CREATE INDEX mine ON outbox (type)"},
		{Name: "a column missing", SQL: "ALTER TABLE outbox DROP send_id", Says: "no column send_id"},
		{Name: "a column of another type", SQL: "ALTER TABLE outbox_attempt MODIFY life bigint NOT NULL", Says: "column life of table outbox_attempt is bigint and must be int"},
		{Name: "a time of whole seconds", SQL: "ALTER TABLE outbox_lease DROP CONSTRAINT outbox_lease_times_check, MODIFY renewed_at datetime NOT NULL", Says: "is datetime(0) and must be datetime(6)"},
		{Name: "a text that knows no case", SQL: "ALTER TABLE outbox_control MODIFY name varchar(400) COLLATE utf8mb4_general_ci NOT NULL", Says: "column name of table outbox_control is varchar(400) utf8mb4_general_ci and must be varchar(400) utf8mb4_"},
		{Name: "a table missing", SQL: "DROP TABLE outbox_control", Says: "table outbox_control is missing: run outboxd migrate up"},
		{Name: "no transactions", SQL: "ALTER TABLE outbox_attempt ENGINE = MyISAM", Says: "table outbox_attempt is MyISAM and must be of the engine InnoDB: run ALTER TABLE outbox_attempt ENGINE = InnoDB"},
		{Name: "the claim's index missing", SQL: "DROP INDEX outbox_due ON outbox", Says: "index outbox_due"},
		{Name: "the claim's index on the state", SQL: "DROP INDEX outbox_due ON outbox; CREATE INDEX outbox_due ON outbox (state, due_at)", Says: "(routing_key, lapses, due_at, seq)"},
		{Name: "the claim's index on a part", SQL: "DROP INDEX outbox_due ON outbox; CREATE INDEX outbox_due ON outbox (routing_key(10), lapses, due_at, seq)", Says: "index outbox_due"},
		{Name: "the claim's index hidden", SQL: "ALTER TABLE outbox ALTER INDEX outbox_due /*!80017 INVISIBLE */ /*M!100600 IGNORED */", Says: "index outbox_due"},
		{Name: "ids not unique", SQL: "DROP INDEX outbox_id_key ON outbox; CREATE INDEX outbox_id_key ON outbox (id)", Says: "index outbox_id_key"},
		{Name: "a constraint missing", SQL: "ALTER TABLE outbox DROP CONSTRAINT outbox_due_check", Says: "outbox_due_check"},
		{Name: "another default", SQL: "ALTER TABLE outbox ALTER due_at SET DEFAULT (CURRENT_TIMESTAMP(6))", Says: "UTC_TIMESTAMP(6)"},
	}
	onBoth(t, func(t *testing.T, s testServer) {
		dialecttest.TestShapes(t, shapes, func(t *testing.T) dialecttest.Backend { return seen{s.newDatabase(t), t} })
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
