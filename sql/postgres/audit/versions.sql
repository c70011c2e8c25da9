-- Which versions of which types wait, and which of them does no relay accept? Pending messages by routing key, type and
-- schema_version, since when they wait, and how many of them were turned back as no configuration has a policy for them.
-- Of each routing key and number of lapses, the 10,000 that are due first are looked at; the index leads from one to the
-- next.
WITH RECURSIVE heads AS (
    (SELECT routing_key, lapses FROM /*schema.*/outbox WHERE due_at IS NOT NULL ORDER BY routing_key, lapses LIMIT 1)
    UNION ALL
    SELECT n.routing_key, n.lapses FROM heads h CROSS JOIN LATERAL (
        SELECT routing_key, lapses FROM /*schema.*/outbox
        WHERE due_at IS NOT NULL AND (routing_key, lapses) > (h.routing_key, h.lapses) ORDER BY routing_key, lapses LIMIT 1) n
)
SELECT h.routing_key, m.type, m.schema_version, count(*) AS waiting, min(m.created_at) AS waiting_since,
    count(*) FILTER (WHERE m.error_class = 'no_policy') AS no_policy
FROM heads h
CROSS JOIN LATERAL (
    SELECT type, schema_version, created_at, error_class FROM /*schema.*/outbox
    WHERE routing_key = h.routing_key AND lapses = h.lapses AND due_at IS NOT NULL
    ORDER BY due_at, seq LIMIT 10000) m
GROUP BY h.routing_key, m.type, m.schema_version
ORDER BY no_policy DESC, waiting_since;
