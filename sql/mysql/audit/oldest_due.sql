-- How far behind are the relays? For each routing key, and type where a routing key has several: since when the oldest due
-- message has been due, and how many are. Times are UTC.
--
-- Of each routing key and number of lapses, the oldest 10,000 are looked at. To find them, the index outbox_due is read:
-- on MySQL the part of those routing keys that have any, on MariaDB all of it. Ten million messages take some seconds.
WITH bounds AS (
    SELECT routing_key, lapses, (SELECT o.seq FROM /*schema.*/outbox o FORCE INDEX (outbox_due)
        WHERE o.routing_key = h.routing_key AND o.lapses = h.lapses ORDER BY o.routing_key, o.lapses, o.due_at, o.seq LIMIT 1 OFFSET 9999) AS seq
    FROM /*schema.*/outbox h GROUP BY routing_key, lapses HAVING MIN(due_at) <= UTC_TIMESTAMP(6)
)
SELECT b.routing_key, o.type, MIN(o.due_at) AS oldest_due_at,
    TIMESTAMPDIFF(SECOND, MIN(o.due_at), UTC_TIMESTAMP(6)) AS oldest_due_s, COUNT(*) AS due
FROM bounds b
LEFT JOIN /*schema.*/outbox final ON final.seq = b.seq
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (outbox_due) ON o.routing_key = b.routing_key AND o.lapses = b.lapses
    AND o.due_at <= UTC_TIMESTAMP(6) AND (b.seq IS NULL OR o.due_at < final.due_at OR (o.due_at = final.due_at AND o.seq <= b.seq))
GROUP BY b.routing_key, o.type
ORDER BY oldest_due_at;
