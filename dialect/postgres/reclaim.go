package postgres

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// Only a lease that is as it was watched changes hands; a locked one is renewed or taken just now. $1 lease, $2 renewed_at
// as watched, $3 relay.
const sqlTake = `
WITH w AS MATERIALIZED (
  SELECT lease_id, relay FROM /*schema.*/outbox_lease
  WHERE lease_id = $1::bigint AND renewed_at = $2::timestamptz FOR UPDATE SKIP LOCKED)
UPDATE /*schema.*/outbox_lease SET relay = $3::text, renewed_at = now()
WHERE lease_id = (SELECT lease_id FROM w) RETURNING (SELECT relay FROM w) AS was`

// Take implements relay.Reclaimer.
func (p *Store) Take(ctx context.Context, lease relay.Lease) (was string, ok bool, err error) {
	owners, err := p.keep.texts(ctx, "take", int64(lease.ID), lease.Renewed, p.relay)
	if err != nil || len(owners) == 0 {
		return "", false, err
	}
	return owners[0], true, nil
}

// What is in flight under a lease, as long as the lease is ours: nobody may move messages by a lease that was taken from
// him. No lock is held on the lease row meanwhile. A claim that is later than now was made before
// the clock stepped back. $1 lease, $2 relay, $3 whose it was.
const sqlMove = `
WITH l AS MATERIALIZED (
  SELECT least(claimed_at, now()) AS claimed_at, ids FROM /*schema.*/outbox_lease
  WHERE lease_id = $1::bigint AND relay = $2::text),
k AS MATERIALIZED (
  SELECT id FROM /*schema.*/outbox
  WHERE id = ANY (ARRAY(SELECT unnest(ids) FROM l)) AND lease_id = $1::bigint AND state = 'in_flight'
  ORDER BY id FOR NO KEY UPDATE SKIP LOCKED),
u AS (
  UPDATE /*schema.*/outbox o SET state = 'pending', due_at = (SELECT claimed_at FROM l), lease_id = -1,
    lapses = least(o.lapses + 1::bigint, 2147483647), unknown_since = coalesce(o.unknown_since, (SELECT claimed_at FROM l))
  WHERE o.id = ANY (ARRAY(SELECT id FROM k)) AND o.lease_id = $1::bigint AND o.state = 'in_flight'
  RETURNING o.id, o.routing_key, o.replays, o.attempts),
r AS (
  INSERT INTO /*schema.*/outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome)
  SELECT u.id, u.replays, u.attempts, $3::text, l.claimed_at, clock_timestamp() - l.claimed_at, 'lapse' FROM u, l)
SELECT id, routing_key FROM u`

// $1 lease, $2 relay.
const sqlMoveLeft = `
SELECT id FROM /*schema.*/outbox
WHERE id = ANY (ARRAY(
    SELECT unnest(ids) FROM /*schema.*/outbox_lease WHERE lease_id = $1::bigint AND relay = $2::text))
  AND lease_id = $1::bigint AND state = 'in_flight' LIMIT 1`

// Move implements relay.Reclaimer.
func (p *Store) Move(ctx context.Context, lease relay.LeaseID, was string) (moved []relay.Moved, left bool, err error) {
	moved, err = p.moved(ctx, "move", int64(lease), p.relay, was)
	if err != nil {
		return nil, false, err
	}
	stuck, err := p.work.texts(ctx, "move_left", int64(lease), p.relay)
	return moved, len(stuck) > 0 || err != nil, err
}

// One page of the key, with a mark where a message is in flight and its lease does not exist: a claim writes both at once
// and a lease goes after its last message is settled, so no moment of an ordinary life looks like that. The page begins
// with the id itself only where it is the first. $1 id, $2 whether it is the first page, $3 length of the page.
const sqlOrphans = `
SELECT o.id, o.lease_id,
  o.state = 'in_flight' AND NOT EXISTS (SELECT FROM /*schema.*/outbox_lease l WHERE l.lease_id = o.lease_id) AS orphan
FROM /*schema.*/outbox o WHERE o.id >= $1::uuid AND (o.id > $1::uuid OR $2::bool) ORDER BY o.id LIMIT $3::int`

// Makes orphans pending. The guard compares the leases as they were seen: meanwhile one may have been claimed anew. $1 ids,
// $2 leases.
const sqlAdopt = sqlUnlocked + `,
u AS (
  UPDATE /*schema.*/outbox o SET state = 'pending', due_at = now(), lease_id = -1,
    lapses = least(o.lapses + 1::bigint, 2147483647), unknown_since = coalesce(o.unknown_since, o.created_at)
  WHERE o.id = ANY (ARRAY(SELECT id FROM k)) AND ` + sqlGuard + `
  RETURNING o.id, o.routing_key, o.replays, o.attempts, o.created_at),
r AS (
  INSERT INTO /*schema.*/outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome)
  SELECT id, replays, attempts, '', created_at, clock_timestamp() - created_at, 'lapse' FROM u)
SELECT id, routing_key FROM u`

const orphanPage = 5000

// Orphans implements relay.Reclaimer. Nobody knows under whose lease an orphan was, so its attempt names no relay.
func (p *Store) Orphans(ctx context.Context, after string) (moved []relay.Moved, next string, err error) {
	first := after == ""
	if first {
		after = lowestUUID
	}
	var orphans batch
	var last string
	read := 0
	err = p.work.query(ctx, "orphans", func(rows *sqlx.Rows) error {
		var o dialect.Settling
		var orphan bool
		err := rows.Scan(&o.ID, &o.Lease, &orphan)
		if orphan {
			orphans = append(orphans, o)
		}
		read, last = read+1, o.ID
		return err
	}, after, first, orphanPage)
	if err != nil {
		return nil, "", err
	}
	if read == orphanPage {
		next = last
	}
	if len(orphans) == 0 {
		return nil, next, nil
	}
	moved, err = p.moved(ctx, "adopt", orphans.ids(), orphans.leases())
	return moved, next, err
}

// moved runs a statement that makes messages pending.
func (p *Store) moved(ctx context.Context, name string, args ...any) (moved []relay.Moved, err error) {
	err = p.work.query(ctx, name, func(rows *sqlx.Rows) error {
		var m relay.Moved
		err := rows.Scan(&m.ID, &m.RoutingKey)
		moved = append(moved, m)
		return err
	}, args...)
	return moved, err
}
