-- What went wrong, how often, and since when? Pending messages after a send that was not done, and failed ones that nobody
-- has resolved, by state, routing key, type, schema_version, reason, error class and the error's text without what differs
-- each time: numbers, UUIDs and quoted texts are …. The last one of each is its sample. Of a failed message the time is
-- when it failed, of a pending one when it was created. Times are UTC.
--
-- The last 10,000 that failed are looked at, and of each routing key and number of lapses 10,000 that have been due for the
-- longest time, 10,000 that came due last, and 10,000 whose next try comes first. To find them, the index outbox_due is
-- read: on MySQL the part of those routing keys that have any, on MariaDB all of it. Ten million messages take some seconds.
WITH bounds AS (
    SELECT routing_key, lapses,
        (SELECT o.seq FROM /*schema.*/outbox o FORCE INDEX (outbox_due) WHERE o.routing_key = h.routing_key AND o.lapses = h.lapses
         ORDER BY o.routing_key, o.lapses, o.due_at, o.seq LIMIT 1 OFFSET 9999) AS oldest,
        (SELECT o.seq FROM /*schema.*/outbox o FORCE INDEX (outbox_due) WHERE o.routing_key = h.routing_key AND o.lapses = h.lapses
            AND o.due_at <= UTC_TIMESTAMP(6)
         ORDER BY o.routing_key DESC, o.lapses DESC, o.due_at DESC, o.seq DESC LIMIT 1 OFFSET 9999) AS newest,
        (SELECT o.seq FROM /*schema.*/outbox o FORCE INDEX (outbox_due) WHERE o.routing_key = h.routing_key AND o.lapses = h.lapses
            AND o.due_at > UTC_TIMESTAMP(6)
         ORDER BY o.routing_key, o.lapses, o.due_at, o.seq LIMIT 1 OFFSET 9999) AS next
    FROM /*schema.*/outbox h GROUP BY routing_key, lapses HAVING MIN(due_at) < '9999-12-31'
),
pending AS (
    SELECT o.seq FROM bounds b LEFT JOIN /*schema.*/outbox final ON final.seq = b.oldest
    STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (outbox_due) ON o.routing_key = b.routing_key AND o.lapses = b.lapses
        AND o.due_at <= UTC_TIMESTAMP(6)
        AND (b.oldest IS NULL OR o.due_at < final.due_at OR (o.due_at = final.due_at AND o.seq <= b.oldest))
    UNION
    SELECT o.seq FROM bounds b LEFT JOIN /*schema.*/outbox final ON final.seq = b.newest
    STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (outbox_due) ON o.routing_key = b.routing_key AND o.lapses = b.lapses
        AND o.due_at <= UTC_TIMESTAMP(6) AND o.due_at >= COALESCE(final.due_at, '1000-01-01')
        AND (b.newest IS NULL OR o.due_at > final.due_at OR o.seq >= b.newest)
    UNION
    SELECT o.seq FROM bounds b LEFT JOIN /*schema.*/outbox final ON final.seq = b.next
    STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (outbox_due) ON o.routing_key = b.routing_key AND o.lapses = b.lapses
        AND o.due_at > UTC_TIMESTAMP(6) AND o.due_at < '9999-12-31'
        AND (b.next IS NULL OR o.due_at < final.due_at OR (o.due_at = final.due_at AND o.seq <= b.next))
),
erred AS (
    SELECT o.seq, o.id, o.state, o.routing_key, o.type, o.schema_version, o.reason, o.error_class, o.last_error, o.created_at AS at
    FROM pending p STRAIGHT_JOIN /*schema.*/outbox o ON o.seq = p.seq AND o.error_class NOT IN ('paused', 'no_policy') AND o.state = 'pending'
    UNION ALL
    SELECT * FROM (
        SELECT seq, id, state, routing_key, type, schema_version, reason, error_class, last_error, failed_at
        FROM /*schema.*/outbox FORCE INDEX (outbox_unresolved)
        WHERE resolved_at = '1000-01-01' AND failed_at > '1000-01-01' ORDER BY failed_at DESC, seq DESC LIMIT 10000) newest
),
-- 0xE280A6 is …, whatever character set a session has.
told AS (
    SELECT *, REGEXP_REPLACE(LEFT(last_error, 200), CONCAT('"[^"]*"|''[^'']*''|0x[0-9a-fA-F]+|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|',
        '(?<!HTTP )(?<![0-9])[0-9]+([.:,][0-9]+)*'), CONVERT(0xE280A6 USING utf8mb4)) AS error
    FROM erred
),
ranked AS (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY state, routing_key, type, schema_version, reason, error_class, error ORDER BY at DESC, seq DESC) AS latest
    FROM told
)
SELECT state, routing_key, type, schema_version, reason, error_class, error, COUNT(*) AS messages, MIN(at) AS first_at, MAX(at) AS last_at,
    MAX(CASE WHEN latest = 1 THEN id END) AS sample_id, MAX(CASE WHEN latest = 1 THEN last_error END) AS sample_error
FROM ranked
GROUP BY state, routing_key, type, schema_version, reason, error_class, error
ORDER BY messages DESC, last_at DESC;
