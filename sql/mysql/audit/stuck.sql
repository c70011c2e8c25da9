-- Which messages are stuck, since when, and why? Due for more than a minute and not claimed, or claimed under a lease that
-- is gone or was not renewed for three times its length. The 100 that wait for the longest time. Times are UTC.
--
-- Of each routing key and number of lapses, the oldest 100 are looked at. To find them, the index outbox_due is read: on
-- MySQL the part of those routing keys that have any, on MariaDB all of it. Ten million messages take some seconds.
WITH bounds AS (
    SELECT routing_key, lapses, (SELECT o.seq FROM /*schema.*/outbox o FORCE INDEX (outbox_due)
        WHERE o.routing_key = h.routing_key AND o.lapses = h.lapses ORDER BY o.routing_key, o.lapses, o.due_at, o.seq LIMIT 1 OFFSET 99) AS seq
    FROM /*schema.*/outbox h GROUP BY routing_key, lapses HAVING MIN(due_at) < UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE
),
due AS (
    SELECT o.seq FROM bounds b
    LEFT JOIN /*schema.*/outbox final ON final.seq = b.seq
    STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (outbox_due) ON o.routing_key = b.routing_key AND o.lapses = b.lapses
        AND o.due_at < UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE
        AND (b.seq IS NULL OR o.due_at < final.due_at OR (o.due_at = final.due_at AND o.seq <= b.seq))
),
-- Nothing indexes the state: leases name what they hold, and for messages without one the newest 10,000 are looked at.
held AS (
    SELECT ids.seq FROM /*schema.*/outbox_lease l JOIN JSON_TABLE(l.ids, '$[*]' COLUMNS (seq bigint PATH '$')) ids
    WHERE l.renewed_at < UTC_TIMESTAMP(6) - INTERVAL 3 * l.length MICROSECOND
),
orphaned AS (
    SELECT seq FROM (SELECT seq, lease_id, state FROM /*schema.*/outbox ORDER BY seq DESC LIMIT 10000) newest
    WHERE state = 'in_flight' AND NOT EXISTS (SELECT 1 FROM /*schema.*/outbox_lease l WHERE l.lease_id = newest.lease_id)
),
stuck AS (
    SELECT o.id, o.routing_key, o.type, o.state,
        CASE WHEN o.state = 'pending' THEN o.due_at ELSE COALESCE(l.claimed_at, o.created_at) END AS stuck_since,
        CASE WHEN o.state = 'pending' THEN 'due, and no relay takes it'
             WHEN l.lease_id IS NULL THEN 'in flight, and its lease is gone'
             ELSE CONCAT('in flight, and relay ', l.relay, ' does not renew its lease') END AS why,
        o.attempts, o.lapses, o.error_class, o.last_error
    FROM (SELECT seq FROM due UNION SELECT seq FROM held UNION SELECT seq FROM orphaned) found
    STRAIGHT_JOIN /*schema.*/outbox o ON o.seq = found.seq
    LEFT JOIN /*schema.*/outbox_lease l ON l.lease_id = o.lease_id
    WHERE o.state IN ('pending', 'in_flight')
)
SELECT id, routing_key, type, state, stuck_since, TIMESTAMPDIFF(SECOND, stuck_since, UTC_TIMESTAMP(6)) AS stuck_s, why, attempts, lapses,
    error_class, last_error
FROM stuck
ORDER BY stuck_since
LIMIT 100;
