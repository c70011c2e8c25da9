INSERT INTO /*schema.*/outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome)
SELECT o.id, o.replays, o.attempts, ?, COALESCE(CAST(? AS datetime(6)), o.created_at),
  TIMESTAMPDIFF(MICROSECOND, COALESCE(CAST(? AS datetime(6)), o.created_at), UTC_TIMESTAMP(6)), 'lapse'
FROM JSON_TABLE(?, '$[*]' COLUMNS (seq bigint PATH '$[0]')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq;
