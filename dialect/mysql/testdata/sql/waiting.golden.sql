(SELECT id, routing_key, attempts, due_at, seq FROM /*schema.*/outbox FORCE INDEX (outbox_due)
  WHERE routing_key = ? AND lapses = 0 AND due_at <= UTC_TIMESTAMP(6) ORDER BY lapses, due_at, seq LIMIT ?)
UNION ALL
(SELECT id, routing_key, attempts, due_at, seq FROM /*schema.*/outbox FORCE INDEX (outbox_due)
  WHERE routing_key = ? AND lapses = 1 AND due_at <= UTC_TIMESTAMP(6) ORDER BY lapses, due_at, seq LIMIT ?)
ORDER BY due_at, seq LIMIT ?;
