-- Which destinations do the relays hold back from, and why? Open: only a probe is sent now and then; ramp: it answers
-- again, and the sends at once grow one by one.
SELECT name, owner AS relay, value::json ->> 'state' AS state, (value::json ->> 'width')::bigint AS width,
    (value::json ->> 'failures')::bigint AS failures_in_a_row, value::json ->> 'last_error' AS last_error, updated_at AS told_at,
    extract(epoch FROM clock_timestamp() - updated_at)::bigint AS told_before_s
FROM /*schema.*/outbox_control
WHERE kind = 'breaker'
ORDER BY value::json ->> 'state' IS NOT DISTINCT FROM 'ok', name, owner;
