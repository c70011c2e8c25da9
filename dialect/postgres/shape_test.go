package postgres

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
		{"a further column", "ALTER TABLE outbox ADD tenant text", nil, ""},
		{"a further index", "CREATE INDEX ON outbox (type)", nil, ""},
		{"a column missing", "ALTER TABLE outbox DROP send_id", dialect.ErrShape, "no column send_id"},
		{"a column of another type", "ALTER TABLE outbox_attempt ALTER life TYPE bigint", dialect.ErrShape, "column life of table outbox_attempt is bigint and must be integer"},
		{"a table missing", "DROP TABLE outbox_control", dialect.ErrShape, "table outbox_control is missing"},
		{"the claim's index missing", "DROP INDEX outbox_due", dialect.ErrShape, "index outbox_due"},
		{"the claim's index on the state", "DROP INDEX outbox_due; CREATE INDEX outbox_due ON outbox (state, due_at)", dialect.ErrShape, "(routing_key, lapses, due_at, seq)"},
		{"an index that was not built to the end", "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'outbox_due'::regclass", dialect.ErrShape, "index outbox_due of table outbox must be USING"},
		{"a constraint missing", "ALTER TABLE outbox DROP CONSTRAINT outbox_due_check", dialect.ErrShape, "outbox_due_check"},
		{"another default", "ALTER TABLE outbox ALTER due_at SET DEFAULT now()", dialect.ErrShape, "clock_timestamp()"},
		{"unlogged", "ALTER TABLE outbox SET UNLOGGED", dialect.ErrShape, "SET LOGGED"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			d.exec(t, c.sql)
			err := d.connect(t, dialect.Options{}).CheckShape(t.Context())
			if !errors.Is(err, c.kind) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("CheckShape: %v, want %v and %q", err, c.kind, c.says)
			}
		})
	}
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
