-- How far behind are the relays? For each routing key, and type where a routing key has several: since when the oldest due
-- message has been due, and how many are. Of each routing key and number of lapses, the oldest 10,000 are looked at; the
-- index leads from one to the next.
WITH RECURSIVE heads AS (
    (SELECT routing_key, lapses FROM /*schema.*/outbox WHERE due_at IS NOT NULL ORDER BY routing_key, lapses LIMIT 1)
    UNION ALL
    SELECT n.routing_key, n.lapses FROM heads h CROSS JOIN LATERAL (
        SELECT routing_key, lapses FROM /*schema.*/outbox
        WHERE due_at IS NOT NULL AND (routing_key, lapses) > (h.routing_key, h.lapses) ORDER BY routing_key, lapses LIMIT 1) n
)
SELECT h.routing_key, m.type, min(m.due_at) AS oldest_due_at,
    extract(epoch FROM clock_timestamp() - min(m.due_at))::bigint AS oldest_due_s, count(*) AS due
FROM heads h
CROSS JOIN LATERAL (
    SELECT type, due_at FROM /*schema.*/outbox
    WHERE routing_key = h.routing_key AND lapses = h.lapses AND due_at <= clock_timestamp()
    ORDER BY due_at, seq LIMIT 10000) m
GROUP BY h.routing_key, m.type
ORDER BY oldest_due_at;
