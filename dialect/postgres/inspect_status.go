package postgres

// A loose index scan finds the pairs of routing key and lapses, so that each is counted by a bounded walk of outbox_due
// that begins at the oldest.
const textWaiting = `
WITH RECURSIVE pairs AS (
  (SELECT routing_key, lapses FROM /*schema.*/outbox WHERE due_at IS NOT NULL ORDER BY routing_key, lapses LIMIT 1)
  UNION ALL
  SELECT n.routing_key, n.lapses FROM pairs p CROSS JOIN LATERAL (
    SELECT routing_key, lapses FROM /*schema.*/outbox
    WHERE due_at IS NOT NULL AND (routing_key, lapses) > (p.routing_key, p.lapses) ORDER BY routing_key, lapses LIMIT 1) n),
seen AS (
  SELECT m.*, row_number() OVER (PARTITION BY p.routing_key, p.lapses) > 10000 AS beyond
  FROM pairs p CROSS JOIN LATERAL (
    SELECT routing_key, created_at, due_at, lease_id, error_class FROM /*schema.*/outbox
    WHERE routing_key = p.routing_key AND lapses = p.lapses AND due_at IS NOT NULL ORDER BY due_at, seq LIMIT 10001) m),
told AS (
  SELECT routing_key, beyond, CASE WHEN due_at <= now() THEN 'due' WHEN error_class IN ('paused', 'no_policy') THEN error_class
      WHEN lease_id = 0 THEN 'delayed' ELSE 'retrying' END AS why,
    CASE WHEN due_at <= now() THEN due_at ELSE created_at END AS since
  FROM seen
  UNION ALL
  SELECT routing_key, false, 'in_flight', created_at FROM /*schema.*/outbox
  WHERE id = ANY (ARRAY(SELECT unnest(ids) FROM /*schema.*/outbox_lease)) AND state = 'in_flight')
SELECT routing_key, why, count(*) FILTER (WHERE NOT beyond) AS messages, bool_or(beyond) AS more,
  (extract(epoch FROM clock_timestamp() - min(since)) * 1000000)::bigint AS oldest
FROM told GROUP BY routing_key, why HAVING count(*) FILTER (WHERE NOT beyond) > 0 ORDER BY routing_key, why`

// The last dialect.CountBound that failed and that nobody has resolved, by outbox_unresolved.
const textFailed = `
WITH seen AS (
  SELECT routing_key, type, reason, error_class, failed_at, row_number() OVER () > 10000 AS beyond FROM (
    SELECT routing_key, type, reason, error_class, failed_at FROM /*schema.*/outbox
    WHERE failed_at IS NOT NULL AND resolved_at IS NULL ORDER BY failed_at DESC LIMIT 10001) f)
SELECT routing_key, type, reason, error_class, count(*) AS messages, (SELECT bool_or(beyond) FROM seen) AS more,
  (extract(epoch FROM clock_timestamp() - max(failed_at)) * 1000000)::bigint AS latest
FROM seen WHERE NOT beyond
GROUP BY routing_key, type, reason, error_class ORDER BY messages DESC, routing_key, type, reason, error_class`

const textRelays = `
SELECT name, host, version, config_hash, instance, array_to_json(destinations)::text AS served, started_at,
  (extract(epoch FROM clock_timestamp() - seen_at) * 1000000)::bigint AS seen_for
FROM /*schema.*/outbox_relay ORDER BY name`

const textPeers = `SELECT name, seen_at::text AS seen, array_to_json(destinations)::text AS served FROM /*schema.*/outbox_relay ORDER BY name`

const textBreakers = `
SELECT owner AS relay, name, value, (extract(epoch FROM clock_timestamp() - updated_at) * 1000000)::bigint AS age
FROM /*schema.*/outbox_control WHERE kind = 'breaker' ORDER BY name, owner`
