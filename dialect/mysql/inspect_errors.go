package mysql

import (
	"context"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

const (
	erred = `SELECT seq, id, state, routing_key, type, schema_version, aggregateid, reason, error_class,
  NULLIF(resolved_at, TIMESTAMP'` + never + `') AS resolved_at, LEFT(last_error, 200) AS last_error,
  COALESCE(NULLIF(failed_at, TIMESTAMP'` + never + `'), created_at) AS at, due_at FROM /*schema.*/outbox FORCE INDEX `
	erringFailed = erred + `(outbox_unresolved) WHERE resolved_at = TIMESTAMP'` + never + `' AND failed_at > TIMESTAMP'` + never + `' ORDER BY failed_at DESC, seq DESC LIMIT ?`
	erringGroup  = erred + `(outbox_due) WHERE routing_key = ? AND lapses = ? AND due_at `
	erringOldest = erringGroup + `<= UTC_TIMESTAMP(6) ORDER BY lapses, due_at, seq LIMIT ?`
	erringNewest = erringGroup + `<= UTC_TIMESTAMP(6) ORDER BY lapses DESC, due_at DESC, seq DESC LIMIT ?`
	erringNext   = erringGroup + `> UTC_TIMESTAMP(6) AND due_at < TIMESTAMP'` + notPending + `' ORDER BY lapses, due_at, seq LIMIT ?`
)

// errEnough ends a scan that has found as much as it was to.
var errEnough = errors.New("enough")

// groups is dialect.Inspector.Groups.
func (d *DB) groups(ctx context.Context, q sqlx.ExtContext, routingKey string) (found []dialect.Group, err error) {
	err = d.eachGroup(ctx, q, routingKey, func(g dialect.Group) error {
		found = append(found, g)
		if len(found) > dialect.GroupBound {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return found, err
}
