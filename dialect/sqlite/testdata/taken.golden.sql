SELECT ids FROM outbox_lease WHERE lease_id = ?1 AND relay = ?2;
