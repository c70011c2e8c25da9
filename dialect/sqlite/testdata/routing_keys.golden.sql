WITH RECURSIVE keys(routing_key) AS (
  SELECT (SELECT routing_key FROM outbox INDEXED BY outbox_due WHERE due_at IS NOT NULL ORDER BY routing_key LIMIT 1)
  UNION ALL
  SELECT (SELECT o.routing_key FROM outbox o INDEXED BY outbox_due
    WHERE o.due_at IS NOT NULL AND o.routing_key > keys.routing_key ORDER BY o.routing_key LIMIT 1)
  FROM keys WHERE keys.routing_key IS NOT NULL)
SELECT routing_key FROM keys WHERE routing_key IS NOT NULL;
