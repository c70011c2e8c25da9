(SELECT routing_key, lapses, due_at < TIMESTAMP'9999-12-31 00:00:00' AS pending
  FROM /*schema.*/outbox FORCE INDEX (outbox_due) WHERE routing_key = ? AND lapses > ? ORDER BY lapses, due_at, seq LIMIT 1)
UNION ALL
(SELECT routing_key, lapses, due_at < TIMESTAMP'9999-12-31 00:00:00' AS pending
  FROM /*schema.*/outbox FORCE INDEX (outbox_due) WHERE routing_key > ? ORDER BY routing_key, lapses, due_at, seq LIMIT 1)
LIMIT 1;
