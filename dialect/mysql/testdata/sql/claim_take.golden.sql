UPDATE JSON_TABLE(?, '$[*]' COLUMNS (seq bigint PATH '$')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
SET o.state = 'in_flight', o.due_at = TIMESTAMP'9999-12-31 00:00:00', o.lease_id = ?;
