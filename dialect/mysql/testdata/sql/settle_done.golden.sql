UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
  seq bigint PATH '$[0]', lease_id bigint PATH '$[1]', result varchar(255) CHARACTER SET utf8mb4 PATH '$[2]')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
SET o.state = 'done', o.attempts = LEAST(o.attempts + 1, 2147483647), o.lapses = 0, o.done_at = UTC_TIMESTAMP(6),
  o.result = s.result
WHERE o.lease_id = s.lease_id AND o.state = 'in_flight';
