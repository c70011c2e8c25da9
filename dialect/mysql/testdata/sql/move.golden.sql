SELECT CAST(LEAST(claimed_at, UTC_TIMESTAMP(6)) AS char) AS claimed_at, ids
FROM /*schema.*/outbox_lease WHERE lease_id = ? AND relay = ?;
