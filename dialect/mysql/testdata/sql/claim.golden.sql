SELECT o.seq, o.id, o.routing_key, o.type, o.schema_version, o.attempts, o.lapses,
  TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), o.expires_at) AS expires_us,
  TIMESTAMPDIFF(MICROSECOND, o.created_at, UTC_TIMESTAMP(6)) AS age_us,
  TIMESTAMPDIFF(MICROSECOND, NULLIF(o.unknown_since, TIMESTAMP'1000-01-01 00:00:00'), UTC_TIMESTAMP(6)) AS unknown_us,
  COALESCE(OCTET_LENGTH(o.payload), 0) + OCTET_LENGTH(o.headers) AS bytes
FROM /*schema.*/outbox o FORCE INDEX (outbox_due)
WHERE o.routing_key = ? AND o.lapses = ? AND o.due_at >= ? AND o.due_at <= UTC_TIMESTAMP(6)
ORDER BY o.lapses, o.due_at, o.seq LIMIT ? FOR UPDATE SKIP LOCKED;
