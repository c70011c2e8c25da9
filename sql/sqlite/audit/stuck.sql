-- Which messages are stuck, since when, and why? Due for more than a minute and not claimed, or claimed under a lease that
-- is gone or was not renewed for three times its length. The 100 that wait for the longest time. Of each routing key and
-- number of lapses, the oldest 100 that are due are looked at; the index leads from one to the next.
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
due AS (
    SELECT o.seq FROM clock CROSS JOIN heads h CROSS JOIN outbox o ON o.seq IN (
        SELECT seq FROM outbox m INDEXED BY outbox_due
        WHERE m.routing_key = h.routing_key AND m.lapses = h.lapses AND m.due_at < now - 60000000 ORDER BY m.due_at, m.seq LIMIT 100)
),
-- Nothing indexes the state: leases name what they hold, and for messages without one the newest 10,000 are looked at.
held AS (
    SELECT j.value FROM clock, outbox_lease l, json_each(l.ids) j WHERE l.renewed_at < now - 3 * l.length
),
orphaned AS (
    SELECT seq FROM (SELECT seq, lease_id, state FROM outbox ORDER BY seq DESC LIMIT 10000) newest
    WHERE state = 'in_flight' AND NOT EXISTS (SELECT 1 FROM outbox_lease l WHERE l.lease_id = newest.lease_id)
),
stuck AS (
    SELECT o.id, o.routing_key, o.type, o.state, coalesce(o.due_at, l.claimed_at, o.created_at) AS since,
        CASE WHEN o.state = 'pending' THEN 'due, and no relay takes it'
             WHEN l.lease_id IS NULL THEN 'in flight, and its lease is gone'
             ELSE 'in flight, and relay ' || l.relay || ' does not renew its lease' END AS why,
        o.attempts, o.lapses, o.error_class, o.last_error
    FROM outbox o
    LEFT JOIN outbox_lease l ON l.lease_id = o.lease_id
    WHERE o.seq IN (SELECT seq FROM due UNION SELECT value FROM held UNION SELECT seq FROM orphaned) AND o.state IN ('pending', 'in_flight')
)
SELECT id, routing_key, type, state, strftime('%Y-%m-%dT%H:%M:%fZ', since / 1e6, 'unixepoch') AS stuck_since,
    (now - since) / 1000000 AS stuck_s, why, attempts, lapses, error_class, last_error
FROM stuck, clock
ORDER BY since
LIMIT 100;
