-- Which versions of which types wait, and which of them does no relay accept? Pending messages by routing key, type and
-- schema_version, since when they wait, and how many of them were turned back as no configuration has a policy for them.
-- Of each routing key and number of lapses, the 10,000 that are due first are looked at; the index leads from one to the
-- next.
WITH RECURSIVE heads AS (
    SELECT * FROM (SELECT routing_key, lapses FROM outbox INDEXED BY outbox_due WHERE due_at IS NOT NULL ORDER BY routing_key, lapses LIMIT 1)
    UNION ALL
    SELECT o.routing_key, o.lapses FROM heads h JOIN outbox o ON o.seq = (
        SELECT seq FROM outbox n INDEXED BY outbox_due
        WHERE n.due_at IS NOT NULL AND (n.routing_key, n.lapses) > (h.routing_key, h.lapses) ORDER BY n.routing_key, n.lapses LIMIT 1)
)
SELECT h.routing_key, o.type, o.schema_version, count(*) AS waiting,
    strftime('%Y-%m-%dT%H:%M:%fZ', min(o.created_at) / 1e6, 'unixepoch') AS waiting_since,
    count(*) FILTER (WHERE o.error_class = 'no_policy') AS no_policy
FROM heads h
CROSS JOIN outbox o ON o.seq IN (
    SELECT seq FROM outbox m INDEXED BY outbox_due
    WHERE m.routing_key = h.routing_key AND m.lapses = h.lapses AND m.due_at IS NOT NULL ORDER BY m.due_at, m.seq LIMIT 10000)
GROUP BY h.routing_key, o.type, o.schema_version
ORDER BY no_policy DESC, min(o.created_at);
