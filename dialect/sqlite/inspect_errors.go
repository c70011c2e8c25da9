package sqlite

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

const (
	erred = `SELECT ` + dialect.ErringFields + `, substr(last_error, 1, 200) AS last_error, coalesce(failed_at, created_at) AS at FROM outbox INDEXED BY `

	erringFailed = erred + `outbox_unresolved WHERE failed_at IS NOT NULL AND resolved_at IS NULL ORDER BY failed_at DESC, seq DESC LIMIT ?`
	erringGroup  = erred + `outbox_due WHERE routing_key = ? AND lapses = ? AND due_at IS NOT NULL AND due_at `
	erringOldest = erringGroup + `<= ` + sqlNow + ` ORDER BY due_at, seq LIMIT ?`
	erringNewest = erringGroup + `<= ` + sqlNow + ` ORDER BY due_at DESC, seq DESC LIMIT ?`
	erringNext   = erringGroup + `> ` + sqlNow + ` ORDER BY due_at, seq LIMIT ?`
)

const textGroups = `
WITH RECURSIVE keys(routing_key) AS (` + sqlKeys + `),
pairs(routing_key, lapses) AS (
  SELECT k.routing_key, (SELECT lapses FROM outbox INDEXED BY outbox_due
    WHERE due_at IS NOT NULL AND routing_key = k.routing_key ORDER BY lapses LIMIT 1)
  FROM keys k WHERE k.routing_key IS NOT NULL AND (? = '' OR k.routing_key = ?)
  UNION ALL
  SELECT p.routing_key, (SELECT lapses FROM outbox INDEXED BY outbox_due
    WHERE due_at IS NOT NULL AND routing_key = p.routing_key AND lapses > p.lapses ORDER BY lapses LIMIT 1)
  FROM pairs p WHERE p.lapses IS NOT NULL)
SELECT routing_key, lapses FROM pairs WHERE lapses IS NOT NULL ORDER BY routing_key, lapses LIMIT ?`

// groups is dialect.Inspector.Groups.
func (d *DB) groups(ctx context.Context, q sqlx.ExtContext, routingKey string) (found []dialect.Group, err error) {
	err = sqlx.SelectContext(ctx, q, &found, textGroups, routingKey, routingKey, dialect.GroupBound+1)
	return found, err
}
