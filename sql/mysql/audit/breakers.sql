-- Which destinations do the relays hold back from, and why? Open: only a probe is sent now and then; ramp: it answers
-- again, and the sends at once grow one by one. Times are UTC.
SELECT name, owner AS relay, JSON_UNQUOTE(JSON_EXTRACT(value, '$.state')) AS state,
    CAST(JSON_EXTRACT(value, '$.width') AS SIGNED) AS width, CAST(JSON_EXTRACT(value, '$.failures') AS SIGNED) AS failures_in_a_row,
    JSON_UNQUOTE(JSON_EXTRACT(value, '$.last_error')) AS last_error, updated_at AS told_at,
    TIMESTAMPDIFF(SECOND, updated_at, UTC_TIMESTAMP(6)) AS told_before_s
FROM /*schema.*/outbox_control
WHERE kind = 'breaker'
ORDER BY COALESCE(JSON_CONTAINS(value, '"ok"', '$.state'), 0), name, owner;
