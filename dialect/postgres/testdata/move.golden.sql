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
SELECT id, routing_key FROM u;
