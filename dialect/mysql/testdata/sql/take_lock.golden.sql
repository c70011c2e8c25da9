SELECT relay FROM /*schema.*/outbox_lease WHERE lease_id = ? AND renewed_at = ? FOR UPDATE SKIP LOCKED;
