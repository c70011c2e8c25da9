UPDATE outbox SET state = 'pending', due_at = CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, lease_id = -1, lapses = lapses + 1, unknown_since = coalesce(unknown_since, created_at)
WHERE seq = ?1 AND state = 'in_flight' AND NOT EXISTS (SELECT 1 FROM outbox_lease l WHERE l.lease_id = outbox.lease_id) RETURNING id, routing_key, replays, attempts, created_at AS since;
