-- How far behind are the relays? For each routing key, and type where a routing key has several: how long the oldest due
-- message has been due, and how many are (the oldest 10,000 of each routing key are looked at).
WITH RECURSIVE routing_keys AS (
    (SELECT routing_key FROM /*schema.*/outbox WHERE due_at IS NOT NULL ORDER BY routing_key LIMIT 1)
    UNION ALL
    SELECT n.routing_key FROM routing_keys k CROSS JOIN LATERAL (
        SELECT routing_key FROM /*schema.*/outbox WHERE due_at IS NOT NULL AND routing_key > k.routing_key ORDER BY routing_key LIMIT 1) n
)
SELECT k.routing_key, m.type, clock_timestamp() - min(m.due_at) AS oldest_due_for, count(*) AS due
FROM routing_keys k
CROSS JOIN LATERAL (
    SELECT type, due_at FROM /*schema.*/outbox
    WHERE routing_key = k.routing_key AND due_at <= clock_timestamp()
    ORDER BY lapses, due_at, seq LIMIT 10000) m
GROUP BY k.routing_key, m.type
ORDER BY oldest_due_for DESC;
