WITH page AS MATERIALIZED (
  SELECT attempt_id, message_id, started_at + duration <= now() - $2::bigint * interval '1 microsecond' AS old
  FROM /*schema.*/outbox_attempt WHERE attempt_id > $1::bigint ORDER BY attempt_id LIMIT $3::int),
ended AS MATERIALIZED (
  SELECT attempt_id FROM page
  WHERE old AND coalesce((SELECT o.state FROM /*schema.*/outbox o WHERE o.id = page.message_id), 'done') IN ('done', 'failed')),
gone AS (
  DELETE FROM /*schema.*/outbox_attempt
  WHERE attempt_id = ANY (ARRAY(SELECT attempt_id FROM ended)) AND NOT $4::bool RETURNING attempt_id)
SELECT count(*) AS looked, CASE WHEN $4::bool THEN (SELECT count(*) FROM ended) ELSE (SELECT count(*) FROM gone) END AS gone,
  CASE WHEN count(*) = $3::int AND bool_or(old) THEN max(attempt_id)::text ELSE '' END AS next
FROM page;
