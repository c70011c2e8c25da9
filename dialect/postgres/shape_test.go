package postgres

import (
	"errors"
	"testing"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/dialecttest"
)

func TestCheckShape(t *testing.T) {
	t.Parallel()
	dialecttest.TestShapes(t, []dialecttest.Shape{
		{Name: "a further column", SQL: "ALTER TABLE outbox ADD tenant text"},
		{Name: "a further index", SQL: "CREATE INDEX ON outbox (type)"},
		{Name: "a column missing", SQL: "ALTER TABLE outbox DROP send_id", Says: "no column send_id"},
		{Name: "a column of another type", SQL: "ALTER TABLE outbox_attempt ALTER life TYPE bigint", Says: "column life of table outbox_attempt is bigint and must be integer"},
		{Name: "a table missing", SQL: "DROP TABLE outbox_control", Says: "table outbox_control is missing"},
		{Name: "the claim's index missing", SQL: "DROP INDEX outbox_due", Says: "index outbox_due"},
		{Name: "the claim's index on the state", SQL: "DROP INDEX outbox_due; CREATE INDEX outbox_due ON outbox (state, due_at)", Says: "(routing_key, lapses, due_at, seq)"},
		{Name: "an index that was not built to the end", SQL: "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'outbox_due'::regclass", Says: "index outbox_due of table outbox must be USING"},
		{Name: "a constraint missing", SQL: "ALTER TABLE outbox DROP CONSTRAINT outbox_due_check", Says: "outbox_due_check"},
		{Name: "another default", SQL: "ALTER TABLE outbox ALTER due_at SET DEFAULT now()", Says: "clock_timestamp()"},
		{Name: "unlogged", SQL: "ALTER TABLE outbox SET UNLOGGED", Says: "SET LOGGED"},
	}, func(t *testing.T) dialecttest.Backend { return seen{newDatabase(t), t} })
}

// A setting of the role can make the server sort where it should walk the index.
func TestCheckPlan(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	for setting, want := range map[string]error{"enable_indexscan=off": dialect.ErrShape, "enable_hashjoin=off": nil} {
		with := d
		with.url = d.with(t, setting)
		if err := with.connect(t, dialect.Options{}).CheckShape(t.Context()); !errors.Is(err, want) {
			t.Errorf("with %s CheckShape says %v, want %v", setting, err, want)
		}
	}
}

func TestWalksIndex(t *testing.T) {
	t.Parallel()
	due := planNode{Kind: "Index Scan", Relation: "outbox", Index: "outbox_due"}
	over := func(kind string, children ...planNode) planNode { return planNode{Kind: kind, Plans: children} }
	cases := []struct {
		name string
		plan planNode
		want bool
	}{
		{"index under a limit", over("Limit", over("LockRows", due)), true},
		{"a sort above the limit", over("Sort", over("Limit", due)), true},
		{"a sort below the limit", over("Limit", over("Sort", due)), false},
		{"a partial sort below the limit", over("Limit", over("Incremental Sort", due)), false},
		{"no limit", due, false},
		{"another index", over("Limit", planNode{Kind: "Index Scan", Relation: "outbox", Index: "outbox_pkey"}), false},
		{"a sequential scan beside it", over("Update", over("Limit", due), planNode{Kind: "Seq Scan", Relation: "outbox"}), false},
		{"a sequential scan of the lease", over("Update", over("Limit", due), planNode{Kind: "Seq Scan", Relation: "outbox_lease"}), true},
		{"a bitmap below the limit", over("Limit", over("Sort", planNode{Kind: "Bitmap Heap Scan", Relation: "outbox"})), false},
	}
	for _, c := range cases {
		if got := walksIndex(c.plan); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
