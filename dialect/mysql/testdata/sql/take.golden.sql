UPDATE /*schema.*/outbox_lease SET relay = ?, renewed_at = UTC_TIMESTAMP(6) WHERE lease_id = ?;
