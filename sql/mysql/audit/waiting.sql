-- Who waits, for how long, and what for? Messages that are not final, by routing key, type, schema_version, what they wait
-- for and the error class of their last send: due (for a relay), delayed (by the application), retrying (for their next
-- try), paused, no_policy (for a configuration that takes the version), in_flight (for the outcome of their send). How old
-- they are counts from when they were created. Times are UTC.
--
-- Of each routing key and number of lapses, the 10,000 that are due first are looked at. To find them, the index outbox_due
-- is read: on MySQL the part of those routing keys that have any, on MariaDB all of it. Ten million messages take some seconds.
WITH bounds AS (
    SELECT routing_key, lapses, (SELECT o.seq FROM /*schema.*/outbox o FORCE INDEX (outbox_due)
        WHERE o.routing_key = h.routing_key AND o.lapses = h.lapses ORDER BY o.routing_key, o.lapses, o.due_at, o.seq LIMIT 1 OFFSET 9999) AS seq
    FROM /*schema.*/outbox h GROUP BY routing_key, lapses HAVING MIN(due_at) < '9999-12-31'
),
told AS (
    SELECT o.routing_key, o.type, o.schema_version, o.error_class, o.created_at, o.due_at,
        CASE WHEN o.due_at <= UTC_TIMESTAMP(6) THEN 'due' WHEN o.error_class IN ('paused', 'no_policy') THEN o.error_class
             WHEN o.lease_id = 0 THEN 'delayed' ELSE 'retrying' END AS why
    FROM bounds b
    LEFT JOIN /*schema.*/outbox final ON final.seq = b.seq
    STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (outbox_due) ON o.routing_key = b.routing_key AND o.lapses = b.lapses
        AND o.due_at < '9999-12-31' AND (b.seq IS NULL OR o.due_at < final.due_at OR (o.due_at = final.due_at AND o.seq <= b.seq))
    UNION ALL
    SELECT o.routing_key, o.type, o.schema_version, o.error_class, o.created_at, NULL, 'in_flight'
    FROM /*schema.*/outbox_lease l
    STRAIGHT_JOIN JSON_TABLE(l.ids, '$[*]' COLUMNS (seq bigint PATH '$')) held
    STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = held.seq AND o.lease_id = l.lease_id AND o.state = 'in_flight'
)
SELECT routing_key, type, schema_version, why, error_class, COUNT(*) AS messages, MIN(created_at) AS oldest_at,
    TIMESTAMPDIFF(SECOND, MIN(created_at), UTC_TIMESTAMP(6)) AS oldest_s, MIN(due_at) AS next_due_at
FROM told
GROUP BY routing_key, type, schema_version, why, error_class
ORDER BY oldest_at;
