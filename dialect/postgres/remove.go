package postgres

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// sqlOld is a message that was kept for long enough. As long as somebody's operation on final messages is open, none was.
// Whether it still is so is looked at again once its row is locked. $2, $3 how long done and resolved ones are kept, in
// microseconds.
const sqlOld = `(state = 'done' AND done_at <= now() - $2::bigint * interval '1 microsecond'
      OR state = 'failed' AND resolved_at <= now() - $3::bigint * interval '1 microsecond')
    AND NOT EXISTS (SELECT FROM /*schema.*/outbox_operation WHERE applied_at IS NULL AND op IN ('replay', 'correct', 'resolve'))`

// One page of the key. Ids begin with the time at which they were made, in milliseconds, unless applications choose others;
// so the page leaves out those that are too young to be old by the time in them: it is bounded by what is old, not by what
// there is: it goes on behind them, not at their beginning, which moves on with the time, so that the walk would not end. Chosen
// ones that look as young become older as time goes on. $1 id after which the page begins, $2 and $3 as
// above, $4 the younger of these, $5 length of the page, $6 whether to count only.
const sqlRemoveMessages = `
WITH young AS MATERIALIZED (
  SELECT (lpad(to_hex(greatest((extract(epoch FROM now()) * 1000)::bigint - $4::bigint / 1000, 0)), 12, '0') || repeat('0', 20))::uuid AS since,
    (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint + 86400000), 12, '0') || repeat('0', 20))::uuid AS until),
bounds AS MATERIALIZED (
  SELECT since, until, CASE WHEN $1::uuid >= since AND $1::uuid < until THEN until ELSE $1::uuid END AS after,
    CASE WHEN $1::uuid < since THEN since ELSE 'ffffffff-ffff-ffff-ffff-ffffffffffff' END AS last FROM young),
page AS MATERIALIZED (
  SELECT id, ` + sqlOld + ` AS old FROM /*schema.*/outbox
  WHERE id > (SELECT after FROM bounds) AND id <= (SELECT last FROM bounds) ORDER BY id LIMIT $5::int),
free AS MATERIALIZED (
  SELECT id FROM /*schema.*/outbox
  WHERE id = ANY (ARRAY(SELECT id FROM page WHERE old)) AND ` + sqlOld + ` AND NOT $6::bool ORDER BY id FOR UPDATE SKIP LOCKED),
gone AS (
  DELETE FROM /*schema.*/outbox WHERE id = ANY (ARRAY(SELECT id FROM free)) AND state IN ('done', 'failed') RETURNING id)
SELECT count(*) AS looked, CASE WHEN $6::bool THEN count(*) FILTER (WHERE old) ELSE (SELECT count(*) FROM gone) END AS gone,
  CASE WHEN count(*) = $5::int THEN (SELECT id::text FROM page ORDER BY id DESC LIMIT 1)
    WHEN $1::uuid < (SELECT since FROM bounds) THEN (SELECT until::text FROM bounds) ELSE '' END AS next
FROM page`

// One page of the attempts, in the order in which they were written: where none of it is old, none behind it is. Those of a
// message that is not final stay: a correction asks them whether anything of it went out. $1 attempt_id, $2 how long they are
// kept, $3 length of the page, $4 whether to count only.
const sqlRemoveAttempts = `
WITH page AS MATERIALIZED (
  SELECT attempt_id, message_id, started_at + duration <= now() - $2::bigint * interval '1 microsecond' AS old
  FROM /*schema.*/outbox_attempt WHERE attempt_id > $1::bigint ORDER BY attempt_id LIMIT $3::int),
ended AS MATERIALIZED (
  SELECT attempt_id FROM page
  WHERE old AND coalesce((SELECT o.state FROM /*schema.*/outbox o WHERE o.id = page.message_id), 'done') IN ('done', 'failed')),
gone AS (
  DELETE FROM /*schema.*/outbox_attempt
  WHERE attempt_id = ANY (ARRAY(SELECT attempt_id FROM ended)) AND NOT $4::bool RETURNING attempt_id)
SELECT count(*) AS looked, CASE WHEN $4::bool THEN (SELECT count(*) FROM ended) ELSE (SELECT count(*) FROM gone) END AS gone,
  CASE WHEN count(*) = $3::int AND bool_or(old) THEN max(attempt_id)::text ELSE '' END AS next
FROM page`

// One page of the operations, those that are applied. Their corrections go first, as many as the page is long; what has some
// left goes another time. $1 id, $2 how long they are kept, $3 length of the page, $4 whether to count only.
const sqlRemoveOperations = `
WITH page AS MATERIALIZED (
  SELECT id, coalesce(applied_at <= now() - $2::bigint * interval '1 microsecond', false) AS old
  FROM /*schema.*/outbox_operation WHERE id > $1::uuid ORDER BY id LIMIT $3::int),
rest AS MATERIALIZED (
  SELECT operation_id, id FROM /*schema.*/outbox_correction
  WHERE operation_id = ANY (ARRAY(SELECT id FROM page WHERE old)) ORDER BY operation_id, id LIMIT $3::int),
corrections AS (
  DELETE FROM /*schema.*/outbox_correction c USING rest r
  WHERE c.operation_id = r.operation_id AND c.id = r.id AND NOT $4::bool RETURNING c.id),
gone AS (
  DELETE FROM /*schema.*/outbox_operation o
  WHERE id = ANY (ARRAY(SELECT id FROM page WHERE old)) AND NOT $4::bool
    AND NOT EXISTS (SELECT FROM /*schema.*/outbox_correction c WHERE c.operation_id = o.id) RETURNING id)
SELECT count(*) AS looked, CASE WHEN $4::bool THEN count(*) FILTER (WHERE old)
    ELSE (SELECT count(*) FROM gone) + (SELECT count(*) FROM corrections) END AS gone,
  CASE WHEN count(*) = $3::int THEN (SELECT id::text FROM page ORDER BY id DESC LIMIT 1) ELSE '' END AS next
FROM page`

// Remove implements relay.Remover.
func (p *Store) Remove(ctx context.Context, r relay.Removal) (removed relay.Removed, err error) {
	var name string
	var args []any
	keep := r.Keep
	switch r.What {
	case relay.KeptMessages:
		name, args = "remove_messages", []any{
			orLowest(r.After), keep.Done.Microseconds(), keep.Resolved.Microseconds(), min(keep.Done, keep.Resolved).Microseconds(), r.Most, r.DryRun,
		}
	case relay.KeptAttempts:
		after := r.After
		if after == "" {
			after = "0"
		}
		name, args = "remove_attempts", []any{after, keep.Attempts.Microseconds(), r.Most, r.DryRun}
	case relay.KeptOperations:
		name, args = "remove_operations", []any{orLowest(r.After), keep.Operations.Microseconds(), r.Most, r.DryRun}
	default:
		return removed, fmt.Errorf("remove: nothing is called %q", r.What)
	}
	err = p.work.query(ctx, name, func(rows *sqlx.Rows) error {
		return rows.Scan(&removed.Looked, &removed.Gone, &removed.Next)
	}, args...)
	return removed, err
}

// orLowest is the place before the first id where a walk begins.
func orLowest(id string) string {
	if id == "" {
		return lowestUUID
	}
	return id
}
