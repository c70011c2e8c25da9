package sqlite

// Loose index scans find the pairs of routing key and lapses, so that each is counted by a bounded walk of outbox_due that
// begins at the oldest. What the walk finds comes as JSON, which alone can be joined to each pair; and messages in flight
// are looked up one by one: neither depends on what ANALYZE last saw.
const textWaiting = `
WITH RECURSIVE keys(routing_key) AS (` + sqlKeys + `),
pairs(routing_key, lapses) AS (
  SELECT k.routing_key, (SELECT lapses FROM outbox INDEXED BY outbox_due
    WHERE due_at IS NOT NULL AND routing_key = k.routing_key ORDER BY lapses LIMIT 1)
  FROM keys k WHERE k.routing_key IS NOT NULL
  UNION ALL
  SELECT p.routing_key, (SELECT lapses FROM outbox INDEXED BY outbox_due
    WHERE due_at IS NOT NULL AND routing_key = p.routing_key AND lapses > p.lapses ORDER BY lapses LIMIT 1)
  FROM pairs p WHERE p.lapses IS NOT NULL),
told(routing_key, beyond, why, since) AS (
  SELECT p.routing_key, m.key >= 10000,
    CASE WHEN m.value ->> 0 <= now THEN 'due' WHEN m.value ->> 2 IN ('paused', 'no_policy') THEN m.value ->> 2
      WHEN m.value ->> 3 = 0 THEN 'delayed' ELSE 'retrying' END,
    CASE WHEN m.value ->> 0 <= now THEN m.value ->> 0 ELSE m.value ->> 1 END
  FROM (SELECT ` + sqlNow + ` AS now) CROSS JOIN pairs p CROSS JOIN json_each((
    SELECT json_group_array(json_array(due_at, created_at, error_class, lease_id)) FROM (
      SELECT due_at, created_at, error_class, lease_id FROM outbox INDEXED BY outbox_due
      WHERE due_at IS NOT NULL AND routing_key = p.routing_key AND lapses = p.lapses ORDER BY due_at, seq LIMIT 10001))) AS m
  WHERE p.lapses IS NOT NULL
  UNION ALL
  SELECT f.message ->> 0, 0, 'in_flight', f.message ->> 1 FROM (
    SELECT (SELECT json_array(routing_key, created_at) FROM outbox WHERE seq = j.value AND state = 'in_flight') AS message
    FROM outbox_lease l CROSS JOIN json_each(l.ids) AS j) AS f
  WHERE f.message IS NOT NULL)
SELECT routing_key, why, count(*) FILTER (WHERE NOT beyond) AS messages, max(beyond) AS more, ` + sqlNow + ` - min(since) AS oldest
FROM told GROUP BY routing_key, why HAVING count(*) FILTER (WHERE NOT beyond) > 0 ORDER BY routing_key, why`

// The last dialect.CountBound that failed and that nobody has resolved, by outbox_unresolved.
const textFailed = `
WITH seen AS (
  SELECT routing_key, type, reason, error_class, failed_at, row_number() OVER () > 10000 AS beyond FROM (
    SELECT routing_key, type, reason, error_class, failed_at FROM outbox INDEXED BY outbox_unresolved
    WHERE failed_at IS NOT NULL AND resolved_at IS NULL ORDER BY failed_at DESC LIMIT 10001) f)
SELECT routing_key, type, reason, error_class, count(*) AS messages, (SELECT max(beyond) FROM seen) AS more,
  ` + sqlNow + ` - max(failed_at) AS latest
FROM seen WHERE NOT beyond
GROUP BY routing_key, type, reason, error_class ORDER BY messages DESC, routing_key, type, reason, error_class`

const textRelays = `
SELECT name, host, version, config_hash, instance, destinations AS served, started_at, ` + sqlNow + ` - seen_at AS seen_for
FROM outbox_relay ORDER BY name`

const textPeers = `SELECT name, CAST(seen_at AS TEXT) AS seen, destinations AS served FROM outbox_relay ORDER BY name`

const textBreakers = `
SELECT owner AS relay, name, value, ` + sqlNow + ` - updated_at AS age
FROM outbox_control WHERE kind = 'breaker' ORDER BY name, owner`
