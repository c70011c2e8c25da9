package mysql

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// planStep is what a row of EXPLAIN says of one table.
type planStep struct{ kind, table, access, index, extra string }

// checkPlan refuses a claim that would sort: InnoDB locks every row that it reads, so the first relay would lock all that
// is due, and a second one would get nothing.
func (d *DB) checkPlan(ctx context.Context, q sqlx.ExtContext) error {
	query, err := render("EXPLAIN FORMAT = TRADITIONAL "+sqlClaim, d.schema)
	if err != nil {
		return err
	}
	plan, err := explain(ctx, q, query, "a", 0, noFloor, 1)
	if err != nil {
		return err
	}
	if !walksIndex(plan) {
		return dialect.Refuse(dialect.ErrShape, "the server does not claim along index outbox_due: drop the index, and create it as outboxd migrate print shows it")
	}
	return nil
}

func explain(ctx context.Context, q sqlx.QueryerContext, query string, args ...any) (plan []planStep, err error) {
	rows, err := q.QueryxContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err has told what went wrong.
	for rows.Next() {
		row := map[string]any{}
		if err := rows.MapScan(row); err != nil {
			return nil, err
		}
		text := func(column string) string {
			if row[column] == nil {
				return ""
			}
			return fmt.Sprintf("%s", row[column])
		}
		plan = append(plan, planStep{kind: text("select_type"), table: text("table"), access: text("type"), index: text("key"), extra: text("Extra")})
	}
	return plan, rows.Err()
}

// walksIndex tells that the one table is read by a range of outbox_due, in its order.
func walksIndex(plan []planStep) bool {
	return len(plan) == 1 && (plan[0].access == "range" || plan[0].access == "ref") && plan[0].index == "outbox_due" &&
		!strings.Contains(plan[0].extra, "filesort") && !strings.Contains(plan[0].extra, "temporary")
}
