SELECT m.id, m.routing_key, m.attempts FROM unnest($1::text[]) AS q(routing_key) CROSS JOIN LATERAL (
  (SELECT id, routing_key, attempts, due_at, seq FROM /*schema.*/outbox
    WHERE NOT $2::bool AND routing_key = q.routing_key AND lapses = 0 AND due_at <= now() ORDER BY lapses DESC, due_at DESC, seq DESC LIMIT $3::int)
  UNION ALL
  (SELECT id, routing_key, attempts, due_at, seq FROM /*schema.*/outbox
    WHERE NOT $2::bool AND routing_key = q.routing_key AND lapses = 1 AND due_at <= now() ORDER BY lapses DESC, due_at DESC, seq DESC LIMIT $3::int)
  UNION ALL
  (SELECT id, routing_key, attempts, due_at, seq FROM /*schema.*/outbox
    WHERE $2::bool AND routing_key = q.routing_key AND lapses > 1 AND due_at <= now() ORDER BY lapses DESC, due_at DESC, seq DESC LIMIT $3::int)
  ORDER BY due_at DESC, seq DESC LIMIT $3::int) m;
