INSERT INTO /*schema.*/outbox_attempt
  (message_id, life, attempt, relay, started_at, duration, outcome, status, error_class, error, answer)
SELECT o.id, o.replays, o.attempts, ?, UTC_TIMESTAMP(6) - INTERVAL s.since_us MICROSECOND, s.took_us, s.outcome,
  s.status, s.error_class, s.error, s.answer
FROM JSON_TABLE(?, '$[*]' COLUMNS (
  seq bigint PATH '$[0]', lease_id bigint PATH '$[1]', state char(9) CHARACTER SET ascii PATH '$[2]',
  delay_us bigint PATH '$[3]', charged int PATH '$[4]', kept int PATH '$[5]', added int PATH '$[6]',
  unknown_us bigint PATH '$[7]', reason varchar(16) CHARACTER SET ascii PATH '$[8]',
  error_class varchar(32) CHARACTER SET utf8mb4 PATH '$[9]', error text CHARACTER SET utf8mb4 PATH '$[10]',
  result varchar(255) CHARACTER SET utf8mb4 PATH '$[11]', outcome varchar(16) CHARACTER SET ascii PATH '$[12]',
  answer text CHARACTER SET utf8mb4 PATH '$[13]', took_us bigint PATH '$[14]', status int PATH '$[15]',
  since_us bigint PATH '$[16]')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
WHERE s.took_us IS NOT NULL;
