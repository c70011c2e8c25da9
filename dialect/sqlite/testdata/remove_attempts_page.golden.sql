SELECT attempt_id AS place, started_at + duration <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - ?1 AS old, 0 AS young
FROM outbox_attempt WHERE attempt_id > ?2 ORDER BY attempt_id LIMIT ?3;
