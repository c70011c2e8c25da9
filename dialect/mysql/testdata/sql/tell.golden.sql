INSERT INTO /*schema.*/outbox (aggregatetype, aggregateid, type, payload, traceparent)
SELECT s.aggregatetype, o.aggregateid, s.type, JSON_OBJECT('id', o.id, 'type', o.type, 'state', o.state, 'reason', o.reason, 'result', NULLIF(RTRIM(o.result), ''),
  'attempts', o.attempts, 'replays', o.replays, 'at', DATE_FORMAT(GREATEST(o.done_at, o.failed_at), '%Y-%m-%dT%H:%i:%s.%fZ')), o.traceparent
FROM JSON_TABLE(?, '$[*]' COLUMNS (
  seq bigint PATH '$[0]', lease_id bigint PATH '$[1]', type varchar(256) CHARACTER SET utf8mb4 PATH '$[2]',
  aggregatetype varchar(256) CHARACTER SET utf8mb4 PATH '$[3]')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
WHERE o.lease_id = s.lease_id AND o.state IN ('done', 'failed');
