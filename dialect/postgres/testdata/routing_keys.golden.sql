WITH RECURSIVE keys(routing_key) AS (
  (SELECT routing_key FROM /*schema.*/outbox WHERE due_at IS NOT NULL ORDER BY routing_key, lapses, due_at, seq LIMIT 1)
  UNION ALL
  SELECT (SELECT o.routing_key FROM /*schema.*/outbox o WHERE o.due_at IS NOT NULL AND o.routing_key > keys.routing_key
    ORDER BY o.routing_key, o.lapses, o.due_at, o.seq LIMIT 1)
  FROM keys WHERE keys.routing_key IS NOT NULL)
SELECT routing_key FROM keys WHERE routing_key IS NOT NULL;
