package mysql

// By the key.
const textPassed = `
SELECT routing_key, type, state, TIMESTAMPDIFF(MICROSECOND, created_at, UTC_TIMESTAMP(6)) AS age,
  TIMESTAMPDIFF(MICROSECOND, created_at, NULLIF(done_at, TIMESTAMP'` + never + `')) AS took
FROM /*schema.*/outbox ORDER BY seq DESC LIMIT ?`

const textSent = `
SELECT COALESCE(o.routing_key, '') AS routing_key, COALESCE(o.type, '') AS type, a.outcome,
  TIMESTAMPDIFF(MICROSECOND, a.started_at, UTC_TIMESTAMP(6)) AS age
FROM (SELECT message_id, attempt_id, outcome, started_at FROM /*schema.*/outbox_attempt ORDER BY attempt_id DESC LIMIT ?) a
LEFT JOIN /*schema.*/outbox o FORCE INDEX (outbox_id_key) ON o.id = a.message_id
ORDER BY a.attempt_id DESC`
