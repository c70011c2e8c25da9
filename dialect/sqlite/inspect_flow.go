package sqlite

// By the key.
const textPassed = `
SELECT routing_key, type, state, ` + sqlNow + ` - created_at AS age, done_at - created_at AS took
FROM outbox ORDER BY seq DESC LIMIT ?`

const textSent = `
SELECT coalesce(o.routing_key, '') AS routing_key, coalesce(o.type, '') AS type, a.outcome, ` + sqlNow + ` - a.started_at AS age
FROM (SELECT message_id, attempt_id, outcome, started_at FROM outbox_attempt ORDER BY attempt_id DESC LIMIT ?) a
LEFT JOIN outbox o ON o.id = a.message_id
ORDER BY a.attempt_id DESC`
