package postgres

import (
	"context"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/outboxd/outboxd/relay"
)

// A loose index scan: one descent for each routing key, whatever the number of messages.
const sqlRoutingKeys = `
WITH RECURSIVE keys(routing_key) AS (
  (SELECT routing_key FROM /*schema.*/outbox WHERE due_at IS NOT NULL ORDER BY routing_key, lapses, due_at, seq LIMIT 1)
  UNION ALL
  SELECT (SELECT o.routing_key FROM /*schema.*/outbox o WHERE o.due_at IS NOT NULL AND o.routing_key > keys.routing_key
    ORDER BY o.routing_key, o.lapses, o.due_at, o.seq LIMIT 1)
  FROM keys WHERE keys.routing_key IS NOT NULL)
SELECT routing_key FROM keys WHERE routing_key IS NOT NULL`

// RoutingKeys implements relay.Scout.
func (p *Store) RoutingKeys(ctx context.Context) ([]string, error) {
	return p.work.texts(ctx, "routing_keys")
}

// The claim index has an order for each value of lapses, so the suspects and the two others are looked for apart, each
// with no sort, and then put together. $1 routing keys, $2 suspects only, $3 limit for each routing key.
const sqlWaiting = `
SELECT m.id, m.routing_key, m.attempts FROM unnest($1::text[]) AS q(routing_key) CROSS JOIN LATERAL (
  (SELECT id, routing_key, attempts, due_at, seq FROM /*schema.*/outbox
    WHERE NOT $2::bool AND routing_key = q.routing_key AND lapses = 0 AND due_at <= now() ORDER BY lapses, due_at, seq LIMIT $3::int)
  UNION ALL
  (SELECT id, routing_key, attempts, due_at, seq FROM /*schema.*/outbox
    WHERE NOT $2::bool AND routing_key = q.routing_key AND lapses = 1 AND due_at <= now() ORDER BY lapses, due_at, seq LIMIT $3::int)
  UNION ALL
  (SELECT id, routing_key, attempts, due_at, seq FROM /*schema.*/outbox
    WHERE $2::bool AND routing_key = q.routing_key AND lapses > 1 AND due_at <= now() ORDER BY lapses, due_at, seq LIMIT $3::int)
  ORDER BY due_at, seq LIMIT $3::int) m`

// The same from the other end.
const sqlWaitingNewest = `
SELECT m.id, m.routing_key, m.attempts FROM unnest($1::text[]) AS q(routing_key) CROSS JOIN LATERAL (
  (SELECT id, routing_key, attempts, due_at, seq FROM /*schema.*/outbox
    WHERE NOT $2::bool AND routing_key = q.routing_key AND lapses = 0 AND due_at <= now() ORDER BY lapses DESC, due_at DESC, seq DESC LIMIT $3::int)
  UNION ALL
  (SELECT id, routing_key, attempts, due_at, seq FROM /*schema.*/outbox
    WHERE NOT $2::bool AND routing_key = q.routing_key AND lapses = 1 AND due_at <= now() ORDER BY lapses DESC, due_at DESC, seq DESC LIMIT $3::int)
  UNION ALL
  (SELECT id, routing_key, attempts, due_at, seq FROM /*schema.*/outbox
    WHERE $2::bool AND routing_key = q.routing_key AND lapses > 1 AND due_at <= now() ORDER BY lapses DESC, due_at DESC, seq DESC LIMIT $3::int)
  ORDER BY due_at DESC, seq DESC LIMIT $3::int) m`

// Waiting implements relay.Scout. The messages of one routing key come together, in the order in which the keys were given.
func (p *Store) Waiting(ctx context.Context, look relay.Look) (waiting []relay.Waiting, err error) {
	name := "waiting"
	if look.Newest {
		name = "waiting_newest"
	}
	err = p.work.query(ctx, name, func(rows *sqlx.Rows) error {
		var w relay.Waiting
		err := rows.Scan(&w.ID, &w.RoutingKey, &w.Attempts)
		waiting = append(waiting, w)
		return err
	}, pq.StringArray(look.RoutingKeys), look.Suspects, look.Limit)
	return waiting, err
}
