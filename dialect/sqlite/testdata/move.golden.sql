UPDATE outbox SET state = 'pending', due_at = ?3, lease_id = -1, lapses = lapses + 1, unknown_since = coalesce(unknown_since, ?3)
WHERE seq = ?1 AND lease_id = ?2 AND state = 'in_flight' RETURNING id, routing_key, replays, attempts, ?3 AS since;
