SELECT ids, min(claimed_at, CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000) AS since FROM outbox_lease WHERE lease_id = ?1 AND relay = ?2;
