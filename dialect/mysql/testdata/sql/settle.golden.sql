UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
  seq bigint PATH '$[0]', lease_id bigint PATH '$[1]', state char(9) CHARACTER SET ascii PATH '$[2]',
  delay_us bigint PATH '$[3]', charged int PATH '$[4]', kept int PATH '$[5]', added int PATH '$[6]',
  unknown_us bigint PATH '$[7]', reason varchar(16) CHARACTER SET ascii PATH '$[8]',
  error_class varchar(32) CHARACTER SET utf8mb4 PATH '$[9]', error text CHARACTER SET utf8mb4 PATH '$[10]',
  result varchar(255) CHARACTER SET utf8mb4 PATH '$[11]', outcome varchar(16) CHARACTER SET ascii PATH '$[12]',
  answer text CHARACTER SET utf8mb4 PATH '$[13]', took_us bigint PATH '$[14]', status int PATH '$[15]',
  since_us bigint PATH '$[16]')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
SET o.state = s.state,
  o.due_at = IF(s.state = 'pending', UTC_TIMESTAMP(6) + INTERVAL s.delay_us MICROSECOND, TIMESTAMP'9999-12-31 00:00:00'),
  o.attempts = LEAST(o.attempts + s.charged, 2147483647), o.lapses = LEAST(o.lapses * s.kept + s.added, 2147483647),
  o.unknown_since = IF(s.unknown_us IS NULL OR o.unknown_since > TIMESTAMP'1000-01-01 00:00:00', o.unknown_since,
    UTC_TIMESTAMP(6) - INTERVAL s.unknown_us MICROSECOND),
  o.reason = s.reason, o.error_class = COALESCE(s.error_class, o.error_class), o.last_error = COALESCE(s.error, o.last_error),
  o.result = IF(s.state = 'done', s.result, o.result), o.done_at = IF(s.state = 'done', UTC_TIMESTAMP(6), o.done_at),
  o.failed_at = IF(s.state = 'failed', UTC_TIMESTAMP(6), o.failed_at),
  o.resolved_at = IF(s.reason = 'expired', UTC_TIMESTAMP(6), o.resolved_at)
WHERE o.lease_id = s.lease_id AND o.state = 'in_flight';
