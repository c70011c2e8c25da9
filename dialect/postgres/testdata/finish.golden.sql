DELETE FROM /*schema.*/outbox_lease WHERE lease_id = ANY ($1::bigint[]) AND relay = $2::text;
