WITH k AS MATERIALIZED (
  SELECT id FROM /*schema.*/outbox
  WHERE id = ANY ($1::uuid[]) AND lease_id = ANY ($2::bigint[]) AND state = 'in_flight'
  ORDER BY id FOR NO KEY UPDATE SKIP LOCKED),
u AS (
  UPDATE /*schema.*/outbox o SET state = 'pending', due_at = now(), lease_id = -1,
    lapses = least(o.lapses + 1::bigint, 2147483647), unknown_since = coalesce(o.unknown_since, o.created_at)
  WHERE o.id = ANY (ARRAY(SELECT id FROM k)) AND ($1::uuid[])[width_bucket(o.id, $1::uuid[])] = o.id
  AND o.lease_id = ($2::bigint[])[width_bucket(o.id, $1::uuid[])] AND o.state = 'in_flight'
  RETURNING o.id, o.routing_key, o.replays, o.attempts, o.created_at),
r AS (
  INSERT INTO /*schema.*/outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome)
  SELECT id, replays, attempts, '', created_at, clock_timestamp() - created_at, 'lapse' FROM u)
SELECT id, routing_key FROM u;
