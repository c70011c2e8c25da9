-- What went wrong, how often, and since when? Pending messages after a send that was not done, and failed ones that nobody
-- has resolved, by state, routing key, type, schema_version, reason, error class and the error's text without what differs
-- each time: numbers are …, but for the status of HTTP. The last one of each is its sample. Of a failed message the time
-- is when it failed, of a pending one when it was created.
--
-- The last 10,000 that failed are looked at, and of each routing key and number of lapses 10,000 that have been due for the
-- longest time, 10,000 that came due last, and 10,000 whose next try comes first.
WITH RECURSIVE clock AS (
    SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AS now
),
heads AS (
    SELECT * FROM (SELECT routing_key, lapses FROM outbox INDEXED BY outbox_due WHERE due_at IS NOT NULL ORDER BY routing_key, lapses LIMIT 1)
    UNION ALL
    SELECT o.routing_key, o.lapses FROM heads h JOIN outbox o ON o.seq = (
        SELECT seq FROM outbox n INDEXED BY outbox_due
        WHERE n.due_at IS NOT NULL AND (n.routing_key, n.lapses) > (h.routing_key, h.lapses) ORDER BY n.routing_key, n.lapses LIMIT 1)
),
pending AS (
    SELECT o.seq FROM clock CROSS JOIN heads h CROSS JOIN outbox o ON o.seq IN (
        SELECT seq FROM outbox m INDEXED BY outbox_due
        WHERE m.routing_key = h.routing_key AND m.lapses = h.lapses AND m.due_at <= now ORDER BY m.due_at, m.seq LIMIT 10000)
    UNION
    SELECT o.seq FROM clock CROSS JOIN heads h CROSS JOIN outbox o ON o.seq IN (
        SELECT seq FROM outbox m INDEXED BY outbox_due
        WHERE m.routing_key = h.routing_key AND m.lapses = h.lapses AND m.due_at <= now ORDER BY m.due_at DESC, m.seq DESC LIMIT 10000)
    UNION
    SELECT o.seq FROM clock CROSS JOIN heads h CROSS JOIN outbox o ON o.seq IN (
        SELECT seq FROM outbox m INDEXED BY outbox_due
        WHERE m.routing_key = h.routing_key AND m.lapses = h.lapses AND m.due_at > now ORDER BY m.due_at, m.seq LIMIT 10000)
),
erred AS (
    SELECT o.seq, o.id, o.state, o.routing_key, o.type, o.schema_version, o.reason, o.error_class, o.last_error, o.created_at AS at
    FROM pending p CROSS JOIN outbox o ON o.seq = p.seq WHERE o.error_class NOT IN ('paused', 'no_policy')
    UNION ALL
    SELECT * FROM (
        SELECT seq, id, state, routing_key, type, schema_version, reason, error_class, last_error, failed_at
        FROM outbox INDEXED BY outbox_unresolved
        WHERE failed_at IS NOT NULL AND resolved_at IS NULL ORDER BY failed_at DESC, seq DESC LIMIT 10000)
),
-- There are no regular expressions: each digit becomes 0, eight of them in a row one, and then …
cut AS (
    SELECT *, CASE WHEN last_error GLOB 'HTTP [0-9][0-9][0-9]*' THEN 8 ELSE 0 END AS kept, substr(last_error, 1, 200) AS text FROM erred
),
zeros AS (
    SELECT *, replace(replace(replace(replace(replace(replace(replace(replace(replace(substr(text, kept + 1),
        '1', '0'), '2', '0'), '3', '0'), '4', '0'), '5', '0'), '6', '0'), '7', '0'), '8', '0'), '9', '0') AS rest
    FROM cut
),
told AS (
    SELECT *, substr(text, 1, kept) || replace(replace(replace(replace(rest, '00', '0'), '00', '0'), '00', '0'), '0', '…') AS error FROM zeros
),
ranked AS (
    SELECT *, row_number() OVER (PARTITION BY state, routing_key, type, schema_version, reason, error_class, error ORDER BY at DESC, seq DESC) AS latest
    FROM told
)
SELECT state, routing_key, type, schema_version, reason, error_class, error, count(*) AS messages,
    strftime('%Y-%m-%dT%H:%M:%fZ', min(at) / 1e6, 'unixepoch') AS first_at, strftime('%Y-%m-%dT%H:%M:%fZ', max(at) / 1e6, 'unixepoch') AS last_at,
    max(id) FILTER (WHERE latest = 1) AS sample_id, max(last_error) FILTER (WHERE latest = 1) AS sample_error
FROM ranked
GROUP BY state, routing_key, type, schema_version, reason, error_class, error
ORDER BY messages DESC, max(at) DESC;
