WITH young AS MATERIALIZED (
  SELECT (lpad(to_hex(greatest((extract(epoch FROM now()) * 1000)::bigint - $4::bigint / 1000, 0)), 12, '0') || repeat('0', 20))::uuid AS since,
    (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint + 86400000), 12, '0') || repeat('0', 20))::uuid AS until),
bounds AS MATERIALIZED (
  SELECT since, until, CASE WHEN $1::uuid >= since AND $1::uuid < until THEN until ELSE $1::uuid END AS after,
    CASE WHEN $1::uuid < since THEN since ELSE 'ffffffff-ffff-ffff-ffff-ffffffffffff' END AS last FROM young),
page AS MATERIALIZED (
  SELECT id, (state = 'done' AND done_at <= now() - $2::bigint * interval '1 microsecond'
      OR state = 'failed' AND resolved_at <= now() - $3::bigint * interval '1 microsecond')
    AND NOT EXISTS (SELECT FROM /*schema.*/outbox_operation WHERE applied_at IS NULL AND op IN ('replay', 'correct', 'resolve')) AS old FROM /*schema.*/outbox
  WHERE id > (SELECT after FROM bounds) AND id <= (SELECT last FROM bounds) ORDER BY id LIMIT $5::int),
free AS MATERIALIZED (
  SELECT id FROM /*schema.*/outbox
  WHERE id = ANY (ARRAY(SELECT id FROM page WHERE old)) AND (state = 'done' AND done_at <= now() - $2::bigint * interval '1 microsecond'
      OR state = 'failed' AND resolved_at <= now() - $3::bigint * interval '1 microsecond')
    AND NOT EXISTS (SELECT FROM /*schema.*/outbox_operation WHERE applied_at IS NULL AND op IN ('replay', 'correct', 'resolve')) AND NOT $6::bool ORDER BY id FOR UPDATE SKIP LOCKED),
gone AS (
  DELETE FROM /*schema.*/outbox WHERE id = ANY (ARRAY(SELECT id FROM free)) AND state IN ('done', 'failed') RETURNING id)
SELECT count(*) AS looked, CASE WHEN $6::bool THEN count(*) FILTER (WHERE old) ELSE (SELECT count(*) FROM gone) END AS gone,
  CASE WHEN count(*) = $5::int THEN (SELECT id::text FROM page ORDER BY id DESC LIMIT 1)
    WHEN $1::uuid < (SELECT since FROM bounds) THEN (SELECT until::text FROM bounds) ELSE '' END AS next
FROM page;
