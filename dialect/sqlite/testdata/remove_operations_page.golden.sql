SELECT id AS place, coalesce(applied_at <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - ?1, 0) AS old, 0 AS young
FROM outbox_operation WHERE id > ?2 ORDER BY id LIMIT ?3;
