SELECT lease_id AS lease, state = 'in_flight' AS inflight FROM outbox WHERE seq = ?1 AND id = ?2;
