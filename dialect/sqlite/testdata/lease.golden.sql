SELECT relay FROM outbox_lease WHERE lease_id = ?1;
