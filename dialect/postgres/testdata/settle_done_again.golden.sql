WITH k AS MATERIALIZED (
  SELECT id FROM /*schema.*/outbox
  WHERE id = ANY ($1::uuid[]) AND lease_id = ANY ($2::bigint[]) AND state = 'in_flight'
  ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
UPDATE /*schema.*/outbox o SET
  state = 'done', attempts = least(o.attempts + 1::bigint, 2147483647), lapses = 0, done_at = now(),
  result = nullif(($3::text[])[width_bucket(o.id, $1::uuid[])], '')
WHERE o.id = ANY (ARRAY(SELECT id FROM k)) AND ($1::uuid[])[width_bucket(o.id, $1::uuid[])] = o.id
  AND o.lease_id = ($2::bigint[])[width_bucket(o.id, $1::uuid[])] AND o.state = 'in_flight';
