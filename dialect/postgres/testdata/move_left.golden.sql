SELECT id FROM /*schema.*/outbox
WHERE id = ANY (ARRAY(
    SELECT unnest(ids) FROM /*schema.*/outbox_lease WHERE lease_id = $1::bigint AND relay = $2::text))
  AND lease_id = $1::bigint AND state = 'in_flight' LIMIT 1;
