package postgres

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

const (
	erred = `SELECT ` + dialect.ErringFields + `, left(last_error, 200) AS last_error, coalesce(failed_at, created_at) AS at FROM /*schema.*/outbox
WHERE `
	// By outbox_unresolved.
	erringFailed = erred + `failed_at IS NOT NULL AND resolved_at IS NULL ORDER BY failed_at DESC, id DESC LIMIT ?::int`
	// By outbox_due.
	erringGroup  = erred + `routing_key = ?::text AND lapses = ?::int AND due_at IS NOT NULL AND due_at `
	erringOldest = erringGroup + `<= now() ORDER BY due_at, seq LIMIT ?::int`
	erringNewest = erringGroup + `<= now() ORDER BY due_at DESC, seq DESC LIMIT ?::int`
	erringNext   = erringGroup + `> now() ORDER BY due_at, seq LIMIT ?::int`
)

// A loose index scan.
const textGroups = `
WITH RECURSIVE pairs AS (
  (SELECT routing_key, lapses FROM /*schema.*/outbox WHERE due_at IS NOT NULL AND (?::text = '' OR routing_key = ?)
   ORDER BY routing_key, lapses LIMIT 1)
  UNION ALL
  SELECT n.routing_key, n.lapses FROM pairs p CROSS JOIN LATERAL (
    SELECT routing_key, lapses FROM /*schema.*/outbox
    WHERE due_at IS NOT NULL AND (?::text = '' OR routing_key = ?) AND (routing_key, lapses) > (p.routing_key, p.lapses)
    ORDER BY routing_key, lapses LIMIT 1) n)
SELECT routing_key, lapses FROM pairs LIMIT ?::int`

// groups is dialect.Inspector.Groups.
func (d *DB) groups(ctx context.Context, q sqlx.ExtContext, routingKey string) (found []dialect.Group, err error) {
	text, err := render(textGroups, d.schema)
	if err != nil {
		return nil, err
	}
	err = sqlx.SelectContext(ctx, q, &found, sqlx.Rebind(sqlx.DOLLAR, text), routingKey, routingKey, routingKey, routingKey, dialect.GroupBound+1)
	return found, err
}
