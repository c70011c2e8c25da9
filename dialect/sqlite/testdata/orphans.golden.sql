SELECT seq, state = 'in_flight' AND NOT EXISTS (SELECT 1 FROM outbox_lease l WHERE l.lease_id = outbox.lease_id) AS orphan FROM outbox WHERE seq > ?1 ORDER BY seq LIMIT ?2;
