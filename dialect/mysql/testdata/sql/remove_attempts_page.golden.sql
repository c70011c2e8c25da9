SELECT a.attempt_id, a.started_at + INTERVAL a.duration MICROSECOND <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND AS old,
  COALESCE((SELECT o.state FROM /*schema.*/outbox o WHERE o.id = a.message_id), 'done') IN ('done', 'failed') AS ended
FROM /*schema.*/outbox_attempt a FORCE INDEX (PRIMARY) WHERE a.attempt_id > ? ORDER BY a.attempt_id LIMIT ?;
