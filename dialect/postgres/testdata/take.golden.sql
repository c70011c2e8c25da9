WITH w AS MATERIALIZED (
  SELECT lease_id, relay FROM /*schema.*/outbox_lease
  WHERE lease_id = $1::bigint AND renewed_at = $2::timestamptz FOR UPDATE SKIP LOCKED)
UPDATE /*schema.*/outbox_lease SET relay = $3::text, renewed_at = now()
WHERE lease_id = (SELECT lease_id FROM w) RETURNING (SELECT relay FROM w) AS was;
