WITH own AS MATERIALIZED (
  SELECT coalesce((
    SELECT CASE WHEN value LIKE '{%' THEN coalesce(nullif(value::json ->> 'name', ''), value) ELSE value END
    FROM /*schema.*/outbox_control WHERE kind = 'instance' AND name = 'outbox' AND owner = ''), '') = $8::text AS ours),
c AS MATERIALIZED (
  SELECT m.*, q.n
  FROM unnest($1::text[], $2::int[], $3::int[], $4::timestamptz[]) AS q(routing_key, lapses, n, floor_at)
  CROSS JOIN LATERAL (
    SELECT id, routing_key, lapses, due_at FROM /*schema.*/outbox
    WHERE routing_key = q.routing_key AND lapses = q.lapses AND due_at >= q.floor_at AND due_at <= now()
    ORDER BY lapses, due_at, seq LIMIT q.n FOR UPDATE SKIP LOCKED) m),
l AS (
  INSERT INTO /*schema.*/outbox_lease (lease_id, relay, claimed_at, renewed_at, length, ids)
  SELECT CASE WHEN (SELECT ours FROM own) THEN $7::bigint END,
    $6::text, now(), now(), $5::bigint * interval '1 microsecond', coalesce(array_agg(id ORDER BY id), '{}')
  FROM c HAVING count(*) > 0 OR NOT (SELECT ours FROM own)
    OR EXISTS (SELECT FROM /*schema.*/outbox_lease WHERE lease_id = $7::bigint))
UPDATE /*schema.*/outbox o SET state = 'in_flight', due_at = NULL, lease_id = $7::bigint
WHERE o.id = ANY (ARRAY(SELECT id FROM c))
RETURNING o.id, o.seq, o.routing_key, o.type, o.schema_version, o.attempts, o.lapses,
  (extract(epoch FROM CASE WHEN o.expires_at > now() THEN least(o.expires_at, now() + interval '1 year') - now()
    WHEN o.expires_at <= now() THEN interval '0' END) * 1000000)::bigint AS expires_us,
  (extract(epoch FROM now() - o.created_at) * 1000000)::bigint AS age_us,
  (extract(epoch FROM now() - o.unknown_since) * 1000000)::bigint AS unknown_us,
  coalesce(octet_length(o.payload), octet_length(o.payload_bytes), 0) + octet_length(o.headers) AS bytes,
  (SELECT min(d) FROM (
    SELECT max(due_at) AS d FROM c WHERE lapses = 0 GROUP BY routing_key HAVING count(*) >= max(n)) AS full_quotas) AS full_to;
