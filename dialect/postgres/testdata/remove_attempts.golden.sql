WITH page AS MATERIALIZED (
  SELECT attempt_id, started_at + duration <= now() - $2::bigint * interval '1 microsecond' AS old
  FROM /*schema.*/outbox_attempt WHERE attempt_id > $1::bigint ORDER BY attempt_id LIMIT $3::int),
gone AS (
  DELETE FROM /*schema.*/outbox_attempt
  WHERE attempt_id = ANY (ARRAY(SELECT attempt_id FROM page WHERE old)) AND NOT $4::bool RETURNING attempt_id)
SELECT count(*) AS looked, CASE WHEN $4::bool THEN count(*) FILTER (WHERE old) ELSE (SELECT count(*) FROM gone) END AS gone,
  CASE WHEN count(*) = $3::int AND bool_or(old) THEN max(attempt_id)::text ELSE '' END AS next
FROM page;
