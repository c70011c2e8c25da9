SELECT CAST(LEAST(UTC_TIMESTAMP(6) - INTERVAL 2 SECOND, COALESCE((
    SELECT due_at FROM /*schema.*/outbox FORCE INDEX (outbox_due)
    WHERE routing_key = ? AND lapses = 0 AND due_at >= ? ORDER BY lapses, due_at, seq LIMIT 1),
  UTC_TIMESTAMP(6))) AS char) AS floor;
