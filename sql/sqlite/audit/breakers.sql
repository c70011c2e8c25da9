-- Which destinations do the relays hold back from, and why? Open: only a probe is sent now and then; ramp: it answers
-- again, and the sends at once grow one by one.
SELECT name, owner AS relay, json_extract(value, '$.state') AS state, json_extract(value, '$.width') AS width,
    json_extract(value, '$.failures') AS failures_in_a_row, json_extract(value, '$.last_error') AS last_error,
    strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1e6, 'unixepoch') AS told_at, (now - updated_at) / 1000000 AS told_before_s
FROM outbox_control, (SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AS now)
WHERE kind = 'breaker'
ORDER BY json_extract(value, '$.state') IS 'ok', name, owner;
