SELECT seq FROM outbox INDEXED BY outbox_due
WHERE routing_key = ?1 AND lapses = ?2 AND due_at <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000
ORDER BY lapses, due_at, seq LIMIT ?3;
