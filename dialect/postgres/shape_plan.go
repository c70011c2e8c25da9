package postgres

import (
	"context"
	"encoding/json"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
)

// planNode is the part of EXPLAIN (FORMAT JSON) that tells whether a claim walks its index.
type planNode struct {
	Kind     string     `json:"Node Type"`
	Relation string     `json:"Relation Name"`
	Index    string     `json:"Index Name"`
	Plans    []planNode `json:"Plans"`
}

// checkPlan refuses a claim that would read or sort more than it takes: an index that the server cannot use, or a setting
// of the role or the database that forbids it, makes every claim as slow as the table is long.
func (d *DB) checkPlan(ctx context.Context, q sqlx.ExtContext) error {
	query, err := render("EXPLAIN (FORMAT JSON) "+sqlClaim, d.schema)
	if err != nil {
		return err
	}
	var text string
	err = sqlx.GetContext(ctx, q, &text, query, pq.Array([]string{"a"}), pq.Array([]int64{0}), pq.Array([]int64{1}), pq.Array([]string{"-infinity"}), 1, "", 1, "")
	if err != nil {
		return err
	}
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal([]byte(text), &plans); err != nil || len(plans) != 1 {
		return dialect.Refuse(dialect.ErrServer, "the server's EXPLAIN (FORMAT JSON) is not understood: outboxd needs PostgreSQL 13 or later")
	}
	if !walksIndex(plans[0].Plan) {
		return dialect.Refuse(dialect.ErrShape, "the server does not claim along index outbox_due: run REINDEX INDEX outbox_due, and take enable_indexscan and its like out of the settings of the role and the database")
	}
	return nil
}

// walksIndex tells that outbox is read below a Limit along outbox_due and without a sort between, and nowhere in sequence.
func walksIndex(root planNode) bool {
	found, wrong := false, false
	var walk func(n planNode, limited, sorted bool)
	walk = func(n planNode, limited, sorted bool) {
		switch n.Kind {
		case "Limit":
			limited, sorted = true, false
		case "Sort", "Incremental Sort":
			sorted = true
		case "Seq Scan", "Bitmap Heap Scan":
			wrong = wrong || n.Relation == "outbox" && (limited || n.Kind == "Seq Scan")
		case "Index Scan", "Index Only Scan":
			found = found || n.Index == "outbox_due" && limited && !sorted
		}
		for _, child := range n.Plans {
			walk(child, limited, sorted)
		}
	}
	walk(root, false, false)
	return found && !wrong
}
