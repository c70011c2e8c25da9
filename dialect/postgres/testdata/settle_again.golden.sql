WITH k AS MATERIALIZED (
  SELECT id FROM /*schema.*/outbox
  WHERE id = ANY ($1::uuid[]) AND lease_id = ANY ($2::bigint[]) AND state = 'in_flight'
  ORDER BY id FOR NO KEY UPDATE SKIP LOCKED),
u AS (
  UPDATE /*schema.*/outbox o SET
  (state, due_at, attempts, lapses, unknown_since, reason, error_class, last_error, result,
   done_at, failed_at, resolved_at) = (
    SELECT s, CASE WHEN s = 'pending' THEN clock_timestamp() + ($6::bigint[])[i] * interval '1 microsecond' END,
      least(o.attempts + ($7::bigint[])[i], 2147483647),
      CASE ($8::bigint[])[i] WHEN 0 THEN 0 ELSE least(o.lapses + ($8::bigint[])[i] - 1, 2147483647) END,
      CASE ($9::int[])[i] WHEN 0 THEN o.unknown_since
        ELSE coalesce(o.unknown_since, now() - ($16::bigint[])[i] * interval '1 microsecond') END,
      nullif(($10::text[])[i], ''),
      coalesce(nullif(($11::text[])[i], ''), o.error_class), coalesce(nullif(($12::text[])[i], ''), o.last_error),
      CASE WHEN s = 'done' THEN nullif(($13::text[])[i], '') ELSE o.result END,
      CASE WHEN s = 'done' THEN now() END, CASE WHEN s = 'failed' THEN now() END,
      CASE WHEN ($10::text[])[i] = 'expired' THEN now() END
    FROM width_bucket(o.id, $1::uuid[]) AS place(i), LATERAL (SELECT ($5::text[])[i]) AS becomes(s))
  WHERE o.id = ANY (ARRAY(SELECT id FROM k)) AND ($1::uuid[])[width_bucket(o.id, $1::uuid[])] = o.id
  AND o.lease_id = ($2::bigint[])[width_bucket(o.id, $1::uuid[])] AND o.state = 'in_flight'
  RETURNING o.id, o.replays, o.attempts, width_bucket(o.id, $1::uuid[]) AS i),
a AS (
  INSERT INTO /*schema.*/outbox_attempt
    (message_id, life, attempt, relay, started_at, duration, outcome, status, error_class, error, answer)
  SELECT id, replays, attempts, $3::text, now() - ($16::bigint[])[i] * interval '1 microsecond',
    ($15::bigint[])[i] * interval '1 microsecond', ($4::text[])[i], nullif(($17::int[])[i], 0),
    nullif(($11::text[])[i], ''), nullif(($12::text[])[i], ''), nullif(($14::text[])[i], '')
  FROM u WHERE ($15::bigint[])[i] >= 0)
SELECT id FROM u;
