DELETE a FROM JSON_TABLE(?, '$[*]' COLUMNS (attempt_id bigint PATH '$')) s
STRAIGHT_JOIN /*schema.*/outbox_attempt a FORCE INDEX (PRIMARY) ON a.attempt_id = s.attempt_id;
