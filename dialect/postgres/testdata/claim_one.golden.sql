WITH own AS MATERIALIZED (
  SELECT coalesce((
    SELECT CASE WHEN value LIKE '{%' THEN coalesce(nullif(value::json ->> 'name', ''), value) ELSE value END
    FROM /*schema.*/outbox_control WHERE kind = 'instance' AND name = 'outbox' AND owner = ''), '') = $5::text AS ours),
c AS MATERIALIZED (
  SELECT id FROM /*schema.*/outbox WHERE id = $1::uuid AND due_at <= now() FOR UPDATE SKIP LOCKED),
l AS (
  INSERT INTO /*schema.*/outbox_lease (lease_id, relay, claimed_at, renewed_at, length, ids)
  SELECT CASE WHEN (SELECT ours FROM own) THEN $4::bigint END,
    $3::text, now(), now(), $2::bigint * interval '1 microsecond', coalesce(array_agg(id), '{}')
  FROM c HAVING count(*) > 0 OR NOT (SELECT ours FROM own)
    OR EXISTS (SELECT FROM /*schema.*/outbox_lease WHERE lease_id = $4::bigint))
UPDATE /*schema.*/outbox o SET state = 'in_flight', due_at = NULL, lease_id = $4::bigint
WHERE o.id = ANY (ARRAY(SELECT id FROM c))
RETURNING o.id, o.seq, o.routing_key, o.type, o.schema_version, o.attempts, o.lapses,
  (extract(epoch FROM CASE WHEN o.expires_at > now() THEN least(o.expires_at, now() + interval '1 year') - now()
    WHEN o.expires_at <= now() THEN interval '0' END) * 1000000)::bigint AS expires_us,
  (extract(epoch FROM now() - o.created_at) * 1000000)::bigint AS age_us,
  (extract(epoch FROM now() - o.unknown_since) * 1000000)::bigint AS unknown_us,
  coalesce(octet_length(o.payload), octet_length(o.payload_bytes), 0) + octet_length(o.headers) AS bytes, NULL::timestamptz AS full_to;
