INSERT INTO outbox_lease (lease_id, relay, claimed_at, renewed_at, length, ids)
SELECT ?1, ?2, now, now, ?3, ?4 FROM (SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AS now);
