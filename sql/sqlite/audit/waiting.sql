-- Who waits, for how long, and what for? Messages that are not final, by routing key, type, schema_version, what they wait
-- for and the error class of their last send: due (for a relay), delayed (by the application), retrying (for their next
-- try), paused, no_policy (for a configuration that takes the version), in_flight (for the outcome of their send). How old
-- they are counts from when they were created. Of each routing key and number of lapses, the 10,000 that are due first are
-- looked at; the index leads from one to the next.
WITH RECURSIVE clock AS (
    SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AS now
),
heads AS (
    SELECT * FROM (SELECT routing_key, lapses FROM outbox INDEXED BY outbox_due WHERE due_at IS NOT NULL ORDER BY routing_key, lapses LIMIT 1)
    UNION ALL
    SELECT o.routing_key, o.lapses FROM heads h JOIN outbox o ON o.seq = (
        SELECT seq FROM outbox n INDEXED BY outbox_due
        WHERE n.due_at IS NOT NULL AND (n.routing_key, n.lapses) > (h.routing_key, h.lapses) ORDER BY n.routing_key, n.lapses LIMIT 1)
),
told AS (
    SELECT o.routing_key, o.type, o.schema_version, o.error_class, o.created_at, o.due_at,
        CASE WHEN o.due_at <= now THEN 'due' WHEN o.error_class IN ('paused', 'no_policy') THEN o.error_class
             WHEN o.lease_id = 0 THEN 'delayed' ELSE 'retrying' END AS why
    FROM clock CROSS JOIN heads h CROSS JOIN outbox o ON o.seq IN (
        SELECT seq FROM outbox m INDEXED BY outbox_due
        WHERE m.routing_key = h.routing_key AND m.lapses = h.lapses AND m.due_at IS NOT NULL ORDER BY m.due_at, m.seq LIMIT 10000)
    UNION ALL
    SELECT o.routing_key, o.type, o.schema_version, o.error_class, o.created_at, NULL, 'in_flight'
    FROM outbox_lease l CROSS JOIN json_each(l.ids) j CROSS JOIN outbox o ON o.seq = j.value AND o.lease_id = l.lease_id AND o.state = 'in_flight'
)
SELECT routing_key, type, schema_version, why, error_class, count(*) AS messages,
    strftime('%Y-%m-%dT%H:%M:%fZ', min(created_at) / 1e6, 'unixepoch') AS oldest_at, (now - min(created_at)) / 1000000 AS oldest_s,
    strftime('%Y-%m-%dT%H:%M:%fZ', min(due_at) / 1e6, 'unixepoch') AS next_due_at
FROM told, clock
GROUP BY routing_key, type, schema_version, why, error_class
ORDER BY min(created_at);
