(SELECT id, routing_key, attempts, due_at, seq FROM /*schema.*/outbox FORCE INDEX (outbox_due)
  WHERE routing_key = ? AND lapses = 2 AND due_at <= UTC_TIMESTAMP(6) ORDER BY lapses DESC, due_at DESC, seq DESC LIMIT ?)
UNION ALL
(SELECT id, routing_key, attempts, due_at, seq FROM /*schema.*/outbox FORCE INDEX (outbox_due)
  WHERE routing_key = ? AND lapses = 3 AND due_at <= UTC_TIMESTAMP(6) ORDER BY lapses DESC, due_at DESC, seq DESC LIMIT ?)
UNION ALL
(SELECT id, routing_key, attempts, due_at, seq FROM /*schema.*/outbox FORCE INDEX (outbox_due)
  WHERE routing_key = ? AND lapses > 3 AND due_at <= UTC_TIMESTAMP(6) ORDER BY lapses DESC, due_at DESC, seq DESC LIMIT ?)
ORDER BY due_at DESC, seq DESC LIMIT ?;
