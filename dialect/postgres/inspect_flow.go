package postgres

// By the key, which has the time of its making in front.
const textPassed = `
SELECT routing_key, type, state, (extract(epoch FROM clock_timestamp() - created_at) * 1000000)::bigint AS age,
  (extract(epoch FROM done_at - created_at) * 1000000)::bigint AS took
FROM /*schema.*/outbox ORDER BY id DESC LIMIT ?::int`

const textSent = `
SELECT coalesce(o.routing_key, '') AS routing_key, coalesce(o.type, '') AS type, a.outcome,
  (extract(epoch FROM clock_timestamp() - a.started_at) * 1000000)::bigint AS age
FROM (SELECT message_id, attempt_id, outcome, started_at FROM /*schema.*/outbox_attempt ORDER BY attempt_id DESC LIMIT ?::int) a
LEFT JOIN LATERAL (SELECT routing_key, type FROM /*schema.*/outbox WHERE id = a.message_id LIMIT 1) o ON true
ORDER BY a.attempt_id DESC`
