-- What went wrong, how often, and since when? Pending messages after a send that was not done, and failed ones that nobody
-- has resolved, by state, routing key, type, schema_version, reason, error class and the error's text without what differs
-- each time: numbers, UUIDs and quoted texts are …. The last one of each is its sample. Of a failed message the time is
-- when it failed, of a pending one when it was created.
--
-- The last 10,000 that failed are looked at, and of each routing key and number of lapses 10,000 that have been due for the
-- longest time, 10,000 that came due last, and 10,000 whose next try comes first.
WITH RECURSIVE heads AS (
    (SELECT routing_key, lapses FROM /*schema.*/outbox WHERE due_at IS NOT NULL ORDER BY routing_key, lapses LIMIT 1)
    UNION ALL
    SELECT n.routing_key, n.lapses FROM heads h CROSS JOIN LATERAL (
        SELECT routing_key, lapses FROM /*schema.*/outbox
        WHERE due_at IS NOT NULL AND (routing_key, lapses) > (h.routing_key, h.lapses) ORDER BY routing_key, lapses LIMIT 1) n
),
pending AS (
    SELECT m.* FROM heads h CROSS JOIN LATERAL (
        (SELECT id, state, routing_key, type, schema_version, reason, error_class, last_error, created_at AS at FROM /*schema.*/outbox
         WHERE routing_key = h.routing_key AND lapses = h.lapses AND due_at <= now() ORDER BY due_at, seq LIMIT 10000)
        UNION
        (SELECT id, state, routing_key, type, schema_version, reason, error_class, last_error, created_at FROM /*schema.*/outbox
         WHERE routing_key = h.routing_key AND lapses = h.lapses AND due_at <= now() ORDER BY due_at DESC, seq DESC LIMIT 10000)
        UNION
        (SELECT id, state, routing_key, type, schema_version, reason, error_class, last_error, created_at FROM /*schema.*/outbox
         WHERE routing_key = h.routing_key AND lapses = h.lapses AND due_at > now() ORDER BY due_at, seq LIMIT 10000)) m
    WHERE m.error_class NOT IN ('paused', 'no_policy')
),
failed AS (
    SELECT id, state, routing_key, type, schema_version, reason, error_class, last_error, failed_at AS at
    FROM /*schema.*/outbox WHERE failed_at IS NOT NULL AND resolved_at IS NULL ORDER BY failed_at DESC LIMIT 10000
),
told AS (
    SELECT *, regexp_replace(left(last_error, 200), '"[^"]*"|''[^'']*''|0x[0-9a-fA-F]+|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|'
        '(?<!HTTP )(?<![0-9])[0-9]+([.:,][0-9]+)*', '…', 'g') AS error
    FROM (SELECT * FROM pending UNION ALL SELECT * FROM failed) erred
)
SELECT state, routing_key, type, schema_version, reason, error_class, error, count(*) AS messages, min(at) AS first_at, max(at) AS last_at,
    (array_agg(id ORDER BY at DESC))[1] AS sample_id, (array_agg(last_error ORDER BY at DESC))[1] AS sample_error
FROM told
GROUP BY state, routing_key, type, schema_version, reason, error_class, error
ORDER BY messages DESC, last_at DESC;
