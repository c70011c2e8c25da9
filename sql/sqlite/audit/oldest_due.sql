-- How far behind are the relays? For each routing key, and type where a routing key has several: since when the oldest due
-- message has been due, and how many are. Of each routing key and number of lapses, the oldest 10,000 are looked at; the
-- index leads from one to the next.
WITH RECURSIVE heads AS (
    SELECT * FROM (SELECT routing_key, lapses FROM outbox INDEXED BY outbox_due WHERE due_at IS NOT NULL ORDER BY routing_key, lapses LIMIT 1)
    UNION ALL
    SELECT o.routing_key, o.lapses FROM heads h JOIN outbox o ON o.seq = (
        SELECT seq FROM outbox n INDEXED BY outbox_due
        WHERE n.due_at IS NOT NULL AND (n.routing_key, n.lapses) > (h.routing_key, h.lapses) ORDER BY n.routing_key, n.lapses LIMIT 1)
)
SELECT h.routing_key, o.type, strftime('%Y-%m-%dT%H:%M:%fZ', min(o.due_at) / 1e6, 'unixepoch') AS oldest_due_at,
    (now - min(o.due_at)) / 1000000 AS oldest_due_s, count(*) AS due
FROM (SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AS now)
CROSS JOIN heads h
CROSS JOIN outbox o ON o.seq IN (
    SELECT seq FROM outbox m INDEXED BY outbox_due
    WHERE m.routing_key = h.routing_key AND m.lapses = h.lapses AND m.due_at <= now ORDER BY m.due_at, m.seq LIMIT 10000)
GROUP BY h.routing_key, o.type
ORDER BY min(o.due_at);
