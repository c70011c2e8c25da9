-- Which versions of which types wait, and which of them does no relay accept? Pending messages by routing key, type and
-- schema_version, since when they wait, and how many of them were turned back as no configuration has a policy for them.
-- Times are UTC.
--
-- Of each routing key and number of lapses, the 10,000 that are due first are looked at. To find them, the index
-- outbox_due is read: on MySQL the part of those routing keys that have any, on MariaDB all of it. Ten million messages
-- take some seconds.
WITH bounds AS (
    SELECT routing_key, lapses, (SELECT o.seq FROM /*schema.*/outbox o FORCE INDEX (outbox_due)
        WHERE o.routing_key = h.routing_key AND o.lapses = h.lapses ORDER BY o.routing_key, o.lapses, o.due_at, o.seq LIMIT 1 OFFSET 9999) AS seq
    FROM /*schema.*/outbox h GROUP BY routing_key, lapses HAVING MIN(due_at) < '9999-12-31'
)
SELECT b.routing_key, o.type, o.schema_version, COUNT(*) AS waiting, MIN(o.created_at) AS waiting_since,
    COUNT(CASE WHEN o.error_class = 'no_policy' THEN 1 END) AS no_policy
FROM bounds b
LEFT JOIN /*schema.*/outbox final ON final.seq = b.seq
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (outbox_due) ON o.routing_key = b.routing_key AND o.lapses = b.lapses
    AND o.due_at < '9999-12-31' AND (b.seq IS NULL OR o.due_at < final.due_at OR (o.due_at = final.due_at AND o.seq <= b.seq))
GROUP BY b.routing_key, o.type, o.schema_version
ORDER BY no_policy DESC, waiting_since;
