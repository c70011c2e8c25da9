-- Which messages are stuck, since when, and why? Due for more than a minute and not claimed, or claimed under a lease that
-- is gone or was not renewed for three times its length. The 100 that wait for the longest time.
WITH
due AS (
    SELECT id FROM /*schema.*/outbox WHERE due_at < clock_timestamp() - interval '1 minute' ORDER BY due_at LIMIT 100
),
-- Nothing indexes the state: leases name what they hold, and for messages without one the newest 10,000 are looked at.
held AS (
    SELECT unnest(ids) AS id FROM /*schema.*/outbox_lease WHERE renewed_at < clock_timestamp() - 3 * length
),
orphaned AS (
    SELECT id FROM (SELECT id, lease_id, state FROM /*schema.*/outbox ORDER BY id DESC LIMIT 10000) newest
    WHERE state = 'in_flight' AND NOT EXISTS (SELECT FROM /*schema.*/outbox_lease l WHERE l.lease_id = newest.lease_id)
)
SELECT o.id, o.routing_key, o.type, o.state, clock_timestamp() - coalesce(o.due_at, l.claimed_at, o.created_at) AS stuck_for,
    CASE WHEN o.state = 'pending' THEN 'due, and no relay takes it'
         WHEN l.lease_id IS NULL THEN 'in flight, and its lease is gone'
         ELSE 'in flight, and relay ' || l.relay || ' does not renew its lease' END AS why,
    o.attempts, o.lapses, o.error_class, o.last_error
FROM /*schema.*/outbox o
LEFT JOIN /*schema.*/outbox_lease l ON l.lease_id = o.lease_id
WHERE o.id = ANY (ARRAY(SELECT id FROM due UNION SELECT id FROM held UNION SELECT id FROM orphaned))
    AND o.state IN ('pending', 'in_flight')
ORDER BY stuck_for DESC
LIMIT 100;
