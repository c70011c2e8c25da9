SELECT o.id, o.seq, o.routing_key, o.type, o.schema_version, o.attempts, o.lapses,
  (extract(epoch FROM CASE WHEN o.expires_at > now() THEN least(o.expires_at, now() + interval '1 year') - now()
    WHEN o.expires_at <= now() THEN interval '0' END) * 1000000)::bigint AS expires_us,
  (extract(epoch FROM now() - o.created_at) * 1000000)::bigint AS age_us,
  (extract(epoch FROM now() - o.unknown_since) * 1000000)::bigint AS unknown_us,
  coalesce(octet_length(o.payload), octet_length(o.payload_bytes), 0) + octet_length(o.headers) AS bytes, NULL::timestamptz AS full_to
FROM /*schema.*/outbox o
WHERE o.id = ANY (ARRAY(
    SELECT unnest(ids) FROM /*schema.*/outbox_lease WHERE lease_id = $1::bigint AND relay = $2::text))
  AND o.lease_id = $1::bigint AND o.state = 'in_flight';
