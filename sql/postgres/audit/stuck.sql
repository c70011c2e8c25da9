-- Which messages are stuck, since when, and why? Due for more than a minute and not claimed, or claimed under a lease that
-- is gone or was not renewed for three times its length. The 100 that wait for the longest time. Of each routing key and
-- number of lapses, the oldest 100 that are due are looked at; the index leads from one to the next.
WITH RECURSIVE heads AS (
    (SELECT routing_key, lapses FROM /*schema.*/outbox WHERE due_at IS NOT NULL ORDER BY routing_key, lapses LIMIT 1)
    UNION ALL
    SELECT n.routing_key, n.lapses FROM heads h CROSS JOIN LATERAL (
        SELECT routing_key, lapses FROM /*schema.*/outbox
        WHERE due_at IS NOT NULL AND (routing_key, lapses) > (h.routing_key, h.lapses) ORDER BY routing_key, lapses LIMIT 1) n
),
due AS (
    SELECT m.id FROM heads h CROSS JOIN LATERAL (
        SELECT id FROM /*schema.*/outbox
        WHERE routing_key = h.routing_key AND lapses = h.lapses AND due_at < clock_timestamp() - interval '1 minute'
        ORDER BY due_at, seq LIMIT 100) m
),
-- Nothing indexes the state: leases name what they hold, and for messages without one the newest 10,000 are looked at.
held AS (
    SELECT unnest(ids) AS id FROM /*schema.*/outbox_lease WHERE renewed_at < clock_timestamp() - 3 * length
),
orphaned AS (
    SELECT id FROM (SELECT id, lease_id, state FROM /*schema.*/outbox ORDER BY id DESC LIMIT 10000) newest
    WHERE state = 'in_flight' AND NOT EXISTS (SELECT FROM /*schema.*/outbox_lease l WHERE l.lease_id = newest.lease_id)
),
stuck AS (
    SELECT o.id, o.routing_key, o.type, o.state, coalesce(o.due_at, l.claimed_at, o.created_at) AS stuck_since,
        CASE WHEN o.state = 'pending' THEN 'due, and no relay takes it'
             WHEN l.lease_id IS NULL THEN 'in flight, and its lease is gone'
             ELSE 'in flight, and relay ' || l.relay || ' does not renew its lease' END AS why,
        o.attempts, o.lapses, o.error_class, o.last_error
    FROM /*schema.*/outbox o
    LEFT JOIN /*schema.*/outbox_lease l ON l.lease_id = o.lease_id
    WHERE o.id = ANY (ARRAY(SELECT id FROM due UNION SELECT id FROM held UNION SELECT id FROM orphaned))
        AND o.state IN ('pending', 'in_flight')
)
SELECT id, routing_key, type, state, stuck_since, extract(epoch FROM clock_timestamp() - stuck_since)::bigint AS stuck_s, why, attempts, lapses,
    error_class, last_error
FROM stuck
ORDER BY stuck_since
LIMIT 100;
