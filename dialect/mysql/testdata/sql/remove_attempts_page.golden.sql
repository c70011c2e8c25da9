SELECT attempt_id, started_at + INTERVAL duration MICROSECOND <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND AS old
FROM /*schema.*/outbox_attempt FORCE INDEX (PRIMARY) WHERE attempt_id > ? ORDER BY attempt_id LIMIT ?;
