SELECT id, routing_key AS routingkey, attempts FROM (
  SELECT * FROM (SELECT id, routing_key, attempts, due_at, seq FROM outbox INDEXED BY outbox_due
    WHERE NOT ?2 AND routing_key = ?1 AND lapses = 0 AND due_at <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 ORDER BY lapses, due_at, seq LIMIT ?3)
  UNION ALL
  SELECT * FROM (SELECT id, routing_key, attempts, due_at, seq FROM outbox INDEXED BY outbox_due
    WHERE NOT ?2 AND routing_key = ?1 AND lapses = 1 AND due_at <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 ORDER BY lapses, due_at, seq LIMIT ?3)
  UNION ALL
  SELECT * FROM (SELECT id, routing_key, attempts, due_at, seq FROM outbox INDEXED BY outbox_due
    WHERE ?2 AND routing_key = ?1 AND lapses > 1 AND due_at <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 ORDER BY lapses, due_at, seq LIMIT ?3))
ORDER BY due_at, seq LIMIT ?3;
