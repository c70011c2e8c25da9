INSERT INTO outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome, status, error_class, error, answer)
SELECT id, replays, attempts + ?4, ?3, CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - ?11, ?5, ?6, nullif(?10, 0), ?7, ?8, ?9
FROM outbox WHERE seq = ?1 AND lease_id = ?2 AND state = 'in_flight';
