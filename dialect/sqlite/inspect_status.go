package sqlite

// A loose index scan finds the pairs of routing key and lapses, so that each is counted by a bounded walk of outbox_due
// that begins at the oldest.
const textWaiting = `
WITH RECURSIVE pairs AS (
  SELECT * FROM (SELECT routing_key, lapses FROM outbox INDEXED BY outbox_due WHERE due_at IS NOT NULL ORDER BY routing_key, lapses LIMIT 1)
  UNION ALL
  SELECT o.routing_key, o.lapses FROM pairs p JOIN outbox o ON o.seq = (
    SELECT seq FROM outbox n INDEXED BY outbox_due
    WHERE n.due_at IS NOT NULL AND (n.routing_key, n.lapses) > (p.routing_key, p.lapses) ORDER BY n.routing_key, n.lapses LIMIT 1)),
seen AS (
  SELECT o.routing_key, o.created_at, o.due_at, o.lease_id, o.error_class, row_number() OVER (PARTITION BY o.routing_key, o.lapses) > 10000 AS beyond
  FROM pairs p CROSS JOIN outbox o ON o.seq IN (
    SELECT seq FROM outbox m INDEXED BY outbox_due
    WHERE m.routing_key = p.routing_key AND m.lapses = p.lapses AND m.due_at IS NOT NULL ORDER BY m.due_at, m.seq LIMIT 10001)),
told AS (
  SELECT routing_key, beyond, CASE WHEN due_at <= now THEN 'due' WHEN error_class IN ('paused', 'no_policy') THEN error_class
      WHEN lease_id = 0 THEN 'delayed' ELSE 'retrying' END AS why,
    CASE WHEN due_at <= now THEN due_at ELSE created_at END AS since
  FROM seen, (SELECT ` + sqlNow + ` AS now)
  UNION ALL
  SELECT routing_key, 0, 'in_flight', created_at FROM outbox
  WHERE seq IN (SELECT j.value FROM outbox_lease l, json_each(l.ids) j) AND state = 'in_flight')
SELECT routing_key, why, count(*) FILTER (WHERE NOT beyond) AS messages, max(beyond) AS more, ` + sqlNow + ` - min(since) AS oldest
FROM told GROUP BY routing_key, why HAVING count(*) FILTER (WHERE NOT beyond) > 0 ORDER BY routing_key, why`

// The last dialect.CountBound that failed, by outbox_failed.
const textFailed = `
WITH seen AS (
  SELECT routing_key, type, reason, error_class, failed_at, resolved_at, row_number() OVER () > 10000 AS beyond FROM (
    SELECT routing_key, type, reason, error_class, failed_at, resolved_at FROM outbox INDEXED BY outbox_failed
    WHERE failed_at IS NOT NULL ORDER BY failed_at DESC LIMIT 10001) f)
SELECT routing_key, type, reason, error_class, count(*) AS messages, (SELECT max(beyond) FROM seen) AS more,
  ` + sqlNow + ` - max(failed_at) AS latest
FROM seen WHERE resolved_at IS NULL AND NOT beyond
GROUP BY routing_key, type, reason, error_class ORDER BY messages DESC, routing_key, type, reason, error_class`

const textRelays = `
SELECT name, host, version, config_hash, destinations AS served, started_at, ` + sqlNow + ` - seen_at AS seen_for
FROM outbox_relay ORDER BY name`

const textBreakers = `
SELECT owner AS relay, name, value, ` + sqlNow + ` - updated_at AS age
FROM outbox_control WHERE kind = 'breaker' ORDER BY name, owner`
