SELECT seq FROM outbox WHERE id = ?1 AND due_at <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000;
