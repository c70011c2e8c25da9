SELECT attempt_id AS place, started_at + duration > CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - ?1 AS young, started_at + duration <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - ?1
  AND coalesce((SELECT o.state FROM outbox o WHERE o.id = a.message_id), 'done') IN ('done', 'failed') AS old
FROM outbox_attempt a WHERE attempt_id > ?2 ORDER BY attempt_id LIMIT ?3;
