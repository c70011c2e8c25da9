UPDATE outbox SET
  state = ?3, due_at = CASE WHEN ?3 = 'pending' THEN CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + ?4 END, attempts = attempts + ?5, lapses = lapses * ?6 + ?7,
  unknown_since = CASE WHEN ?8 IS NULL THEN unknown_since ELSE coalesce(unknown_since, CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - ?8) END,
  reason = ?9, error_class = coalesce(?10, error_class), last_error = coalesce(?11, last_error), result = coalesce(?12, result),
  done_at = CASE WHEN ?3 = 'done' THEN CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 END, failed_at = CASE WHEN ?3 = 'failed' THEN CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 END,
  resolved_at = CASE WHEN ?9 = 'expired' THEN CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 END
WHERE seq = ?1 AND lease_id = ?2 AND state = 'in_flight';
