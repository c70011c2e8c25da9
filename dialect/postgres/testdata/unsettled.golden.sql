SELECT id, lease_id, state = 'in_flight' AS in_flight FROM /*schema.*/outbox WHERE id = ANY ($1::uuid[]);
