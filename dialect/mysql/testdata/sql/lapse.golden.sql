UPDATE JSON_TABLE(?, '$[*]' COLUMNS (seq bigint PATH '$[0]', lease_id bigint PATH '$[1]')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
SET o.state = 'pending', o.due_at = COALESCE(CAST(? AS datetime(6)), UTC_TIMESTAMP(6)), o.lease_id = -1,
  o.lapses = LEAST(o.lapses + 1, 2147483647),
  o.unknown_since = IF(o.unknown_since > TIMESTAMP'1000-01-01 00:00:00', o.unknown_since,
    COALESCE(CAST(? AS datetime(6)), o.created_at))
WHERE o.lease_id = s.lease_id AND o.state = 'in_flight';
