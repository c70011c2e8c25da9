UPDATE /*schema.*/outbox_lease SET renewed_at = now() WHERE lease_id = ANY ($1::bigint[]) AND relay = $2::text
RETURNING lease_id;
