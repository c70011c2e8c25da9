package mysql

import (
	"context"
	"math"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// The next group of routing key and lapses in the claim's index, by one descent each, and whether a message of it is
// pending: that would be its first, since due_at of all others is the last moment there is. MySQL would walk the groups by
// itself (a loose index scan), MariaDB does not where a generated column leads the index. Arguments: routing key, lapses,
// routing key.
const sqlRoutingKeys = `
(SELECT routing_key, lapses, due_at < TIMESTAMP'9999-12-31 00:00:00' AS pending
  FROM /*schema.*/outbox FORCE INDEX (outbox_due) WHERE routing_key = ? AND lapses > ? ORDER BY lapses, due_at, seq LIMIT 1)
UNION ALL
(SELECT routing_key, lapses, due_at < TIMESTAMP'9999-12-31 00:00:00' AS pending
  FROM /*schema.*/outbox FORCE INDEX (outbox_due) WHERE routing_key > ? ORDER BY routing_key, lapses, due_at, seq LIMIT 1)
LIMIT 1`

// RoutingKeys implements relay.Scout. They come in the order of the index.
func (s *Store) RoutingKeys(ctx context.Context) (keys []string, err error) {
	key, lapses := "", math.MaxInt32
	for more := true; more; {
		var pending bool
		more = false
		err := s.work.query(ctx, "routing_keys", func(rows *sqlx.Rows) error {
			more = true
			return rows.Scan(&key, &lapses, &pending)
		}, key, lapses, key)
		if err != nil {
			return nil, err
		}
		if more && pending {
			keys, lapses = append(keys, key), math.MaxInt32 // on to the next key
		}
	}
	return keys, nil
}

// The claim's index has an order for each value of lapses, so each is looked for apart, with no sort, and then put
// together. More than 3 has a message only where its relay died just before it failed with reason lease_lost; only there
// failed messages are walked. Arguments: for each value routing key and limit, then limit.
const (
	sqlWaiting        = sqlDue + `= 0` + sqlOldest + sqlDue + `= 1` + sqlLastOldest
	sqlWaitingNewest  = sqlDue + `= 0` + sqlNewest + sqlDue + `= 1` + sqlLastNewest
	sqlSuspects       = sqlDue + `= 2` + sqlOldest + sqlDue + `= 3` + sqlOldest + sqlDue + `> 3` + sqlLastOldest
	sqlSuspectsNewest = sqlDue + `= 2` + sqlNewest + sqlDue + `= 3` + sqlNewest + sqlDue + `> 3` + sqlLastNewest

	sqlDue = `
(SELECT id, routing_key, attempts, due_at, seq FROM /*schema.*/outbox FORCE INDEX (outbox_due)
  WHERE routing_key = ? AND lapses `
	sqlOldest = ` AND due_at <= UTC_TIMESTAMP(6) ORDER BY lapses, due_at, seq LIMIT ?)
UNION ALL`
	sqlLastOldest = ` AND due_at <= UTC_TIMESTAMP(6) ORDER BY lapses, due_at, seq LIMIT ?)
ORDER BY due_at, seq LIMIT ?`
	sqlNewest = ` AND due_at <= UTC_TIMESTAMP(6) ORDER BY lapses DESC, due_at DESC, seq DESC LIMIT ?)
UNION ALL`
	sqlLastNewest = ` AND due_at <= UTC_TIMESTAMP(6) ORDER BY lapses DESC, due_at DESC, seq DESC LIMIT ?)
ORDER BY due_at DESC, seq DESC LIMIT ?`
)

// Waiting implements relay.Scout. The messages of one routing key come together, in the order in which the keys were given.
func (s *Store) Waiting(ctx context.Context, look relay.Look) (waiting []relay.Waiting, err error) {
	name, values := "waiting", 2
	if look.Suspects {
		name, values = "suspects", 3
	}
	if look.Newest {
		name += "_newest"
	}
	for _, key := range look.RoutingKeys {
		var args []any
		for range values {
			args = append(args, key, look.Limit)
		}
		err := s.work.query(ctx, name, func(rows *sqlx.Rows) error {
			var w relay.Waiting
			var due, seq any
			err := rows.Scan(&w.ID, &w.RoutingKey, &w.Attempts, &due, &seq)
			waiting = append(waiting, w)
			return err
		}, append(args, look.Limit)...)
		if err != nil {
			return nil, err
		}
	}
	return waiting, nil
}
