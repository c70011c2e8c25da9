DELETE FROM outbox_control
WHERE kind = 'breaker' AND (owner = ?1 AND name NOT IN (SELECT key FROM json_each(?2)) OR owner <> ?1 AND updated_at < CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - 86400000000);
