UPDATE outbox SET state = 'in_flight', due_at = NULL, lease_id = ?1 WHERE seq = ?2
RETURNING id, seq, lease_id AS lease, routing_key AS routingkey, type, schema_version AS schemaversion, attempts, lapses,
  expires_at - CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AS expires_us,
  CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - created_at AS age_us,
  CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - unknown_since AS unknown_us,
  coalesce(octet_length(payload), 0) + octet_length(headers) AS bytes;
