WITH page AS MATERIALIZED (
  SELECT id, coalesce(applied_at <= now() - $2::bigint * interval '1 microsecond', false) AS old
  FROM /*schema.*/outbox_operation WHERE id > $1::uuid ORDER BY id LIMIT $3::int),
rest AS MATERIALIZED (
  SELECT operation_id, id FROM /*schema.*/outbox_correction
  WHERE operation_id = ANY (ARRAY(SELECT id FROM page WHERE old)) ORDER BY operation_id, id LIMIT $3::int),
corrections AS (
  DELETE FROM /*schema.*/outbox_correction c USING rest r
  WHERE c.operation_id = r.operation_id AND c.id = r.id AND NOT $4::bool RETURNING c.id),
gone AS (
  DELETE FROM /*schema.*/outbox_operation o
  WHERE id = ANY (ARRAY(SELECT id FROM page WHERE old)) AND NOT $4::bool
    AND NOT EXISTS (SELECT FROM /*schema.*/outbox_correction c WHERE c.operation_id = o.id) RETURNING id)
SELECT count(*) AS looked, CASE WHEN $4::bool THEN count(*) FILTER (WHERE old)
    ELSE (SELECT count(*) FROM gone) + (SELECT count(*) FROM corrections) END AS gone,
  CASE WHEN count(*) = $3::int THEN (SELECT id::text FROM page ORDER BY id DESC LIMIT 1) ELSE '' END AS next
FROM page;
