package sqlite

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// A loose index scan: one descent for each routing key, whatever the number of messages. The last row is NULL.
const sqlKeys = `
  SELECT (SELECT routing_key FROM outbox INDEXED BY outbox_due WHERE due_at IS NOT NULL ORDER BY routing_key LIMIT 1)
  UNION ALL
  SELECT (SELECT o.routing_key FROM outbox o INDEXED BY outbox_due
    WHERE o.due_at IS NOT NULL AND o.routing_key > keys.routing_key ORDER BY o.routing_key LIMIT 1)
  FROM keys WHERE keys.routing_key IS NOT NULL`

const sqlRoutingKeys = `
WITH RECURSIVE keys(routing_key) AS (` + sqlKeys + `)
SELECT routing_key FROM keys WHERE routing_key IS NOT NULL`

// RoutingKeys implements relay.Scout.
func (s *Store) RoutingKeys(ctx context.Context) (keys []string, err error) {
	err = s.read(ctx, "routing_keys", func(ctx context.Context, q *sqlx.DB) error {
		return sqlx.SelectContext(ctx, q, &keys, sqlRoutingKeys)
	})
	return keys, err
}

// The claim index has an order for each value of lapses, so the suspects and the two others are looked for apart, each
// with no sort, and then put together. ?1 routing key, ?2 suspects only, ?3 limit.
const sqlWaiting = `
SELECT id, routing_key AS routingkey, attempts FROM (
  SELECT * FROM (SELECT id, routing_key, attempts, due_at, seq FROM outbox INDEXED BY outbox_due
    WHERE NOT ?2 AND routing_key = ?1 AND lapses = 0 AND due_at <= ` + sqlNow + ` ORDER BY lapses, due_at, seq LIMIT ?3)
  UNION ALL
  SELECT * FROM (SELECT id, routing_key, attempts, due_at, seq FROM outbox INDEXED BY outbox_due
    WHERE NOT ?2 AND routing_key = ?1 AND lapses = 1 AND due_at <= ` + sqlNow + ` ORDER BY lapses, due_at, seq LIMIT ?3)
  UNION ALL
  SELECT * FROM (SELECT id, routing_key, attempts, due_at, seq FROM outbox INDEXED BY outbox_due
    WHERE ?2 AND routing_key = ?1 AND lapses > 1 AND due_at <= ` + sqlNow + ` ORDER BY lapses, due_at, seq LIMIT ?3))
ORDER BY due_at, seq LIMIT ?3`

// The same from the other end.
const sqlWaitingNewest = `
SELECT id, routing_key AS routingkey, attempts FROM (
  SELECT * FROM (SELECT id, routing_key, attempts, due_at, seq FROM outbox INDEXED BY outbox_due
    WHERE NOT ?2 AND routing_key = ?1 AND lapses = 0 AND due_at <= ` + sqlNow + ` ORDER BY lapses DESC, due_at DESC, seq DESC LIMIT ?3)
  UNION ALL
  SELECT * FROM (SELECT id, routing_key, attempts, due_at, seq FROM outbox INDEXED BY outbox_due
    WHERE NOT ?2 AND routing_key = ?1 AND lapses = 1 AND due_at <= ` + sqlNow + ` ORDER BY lapses DESC, due_at DESC, seq DESC LIMIT ?3)
  UNION ALL
  SELECT * FROM (SELECT id, routing_key, attempts, due_at, seq FROM outbox INDEXED BY outbox_due
    WHERE ?2 AND routing_key = ?1 AND lapses > 1 AND due_at <= ` + sqlNow + ` ORDER BY lapses DESC, due_at DESC, seq DESC LIMIT ?3))
ORDER BY due_at DESC, seq DESC LIMIT ?3`

// Waiting implements relay.Scout. The messages of one routing key come together, in the order in which the keys were given.
func (s *Store) Waiting(ctx context.Context, look relay.Look) (waiting []relay.Waiting, err error) {
	query := sqlWaiting
	if look.Newest {
		query = sqlWaitingNewest
	}
	err = s.read(ctx, "waiting", func(ctx context.Context, q *sqlx.DB) error {
		for _, key := range look.RoutingKeys {
			var found []relay.Waiting
			if err := sqlx.SelectContext(ctx, q, &found, query, key, look.Suspects, look.Limit); err != nil {
				return err
			}
			waiting = append(waiting, found...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return waiting, nil
}
