UPDATE outbox_lease SET renewed_at = max(renewed_at + 1, CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000) WHERE lease_id = ?1 AND relay = ?2;
