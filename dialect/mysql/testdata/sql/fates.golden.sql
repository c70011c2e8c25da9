SELECT o.id, o.lease_id, o.state = 'in_flight' AS in_flight
FROM JSON_TABLE(?, '$[*]' COLUMNS (seq bigint PATH '$')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq;
