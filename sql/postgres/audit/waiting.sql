-- Who waits, for how long, and what for? Messages that are not final, by routing key, type, schema_version, what they wait
-- for and the error class of their last send: due (for a relay), delayed (by the application), retrying (for their next
-- try), paused, no_policy (for a configuration that takes the version), in_flight (for the outcome of their send). How old
-- they are counts from when they were created. Of each routing key and number of lapses, the 10,000 that are due first are
-- looked at; the index leads from one to the next.
WITH RECURSIVE heads AS (
    (SELECT routing_key, lapses FROM /*schema.*/outbox WHERE due_at IS NOT NULL ORDER BY routing_key, lapses LIMIT 1)
    UNION ALL
    SELECT n.routing_key, n.lapses FROM heads h CROSS JOIN LATERAL (
        SELECT routing_key, lapses FROM /*schema.*/outbox
        WHERE due_at IS NOT NULL AND (routing_key, lapses) > (h.routing_key, h.lapses) ORDER BY routing_key, lapses LIMIT 1) n
),
told AS (
    SELECT m.routing_key, m.type, m.schema_version, m.error_class, m.created_at, m.due_at,
        CASE WHEN m.due_at <= now() THEN 'due' WHEN m.error_class IN ('paused', 'no_policy') THEN m.error_class
             WHEN m.lease_id = 0 THEN 'delayed' ELSE 'retrying' END AS why
    FROM heads h CROSS JOIN LATERAL (
        SELECT routing_key, type, schema_version, error_class, created_at, due_at, lease_id FROM /*schema.*/outbox
        WHERE routing_key = h.routing_key AND lapses = h.lapses AND due_at IS NOT NULL ORDER BY due_at, seq LIMIT 10000) m
    UNION ALL
    -- OFFSET, so that each lease finds its messages by their key: few are in flight by the planner's statistics.
    SELECT m.routing_key, m.type, m.schema_version, m.error_class, m.created_at, NULL, 'in_flight'
    FROM /*schema.*/outbox_lease l CROSS JOIN LATERAL (
        SELECT routing_key, type, schema_version, error_class, created_at FROM /*schema.*/outbox
        WHERE id = ANY (l.ids) AND lease_id = l.lease_id AND state = 'in_flight' OFFSET 0) m
)
SELECT routing_key, type, schema_version, why, error_class, count(*) AS messages, min(created_at) AS oldest_at,
    extract(epoch FROM clock_timestamp() - min(created_at))::bigint AS oldest_s, min(due_at) AS next_due_at
FROM told
GROUP BY routing_key, type, schema_version, why, error_class
ORDER BY oldest_at;
