INSERT INTO outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome)
VALUES (?1, ?2, ?3, ?4, ?5, max(CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - ?5, 0), 'lapse');
