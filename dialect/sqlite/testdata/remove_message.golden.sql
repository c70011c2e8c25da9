DELETE FROM outbox WHERE seq = ?3 AND (state = 'done' AND done_at <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - ?1 OR state = 'failed' AND resolved_at <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - ?2)
  AND NOT EXISTS (SELECT 1 FROM outbox_operation WHERE applied_at IS NULL AND op IN ('replay', 'correct', 'resolve'));
