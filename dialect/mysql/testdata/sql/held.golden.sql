SELECT o.seq, o.id, o.routing_key, o.type, o.schema_version, o.attempts, o.lapses,
  TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), o.expires_at) AS expires_us,
  TIMESTAMPDIFF(MICROSECOND, o.created_at, UTC_TIMESTAMP(6)) AS age_us,
  TIMESTAMPDIFF(MICROSECOND, NULLIF(o.unknown_since, TIMESTAMP'1000-01-01 00:00:00'), UTC_TIMESTAMP(6)) AS unknown_us,
  COALESCE(OCTET_LENGTH(o.payload), 0) + OCTET_LENGTH(o.headers) AS bytes
FROM /*schema.*/outbox_lease l
STRAIGHT_JOIN JSON_TABLE(l.ids, '$[*]' COLUMNS (seq bigint PATH '$')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
WHERE l.lease_id = ? AND l.relay = ? AND o.lease_id = l.lease_id AND o.state = 'in_flight';
