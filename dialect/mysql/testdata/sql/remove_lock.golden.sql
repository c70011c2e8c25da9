SELECT o.seq FROM (SELECT seq FROM JSON_TABLE(?, '$[*]' COLUMNS (seq bigint PATH '$')) j LIMIT 1000000) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
WHERE (o.state = 'done' AND o.done_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND
    OR o.state = 'failed' AND o.resolved_at > TIMESTAMP'1000-01-01 00:00:00' AND o.resolved_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND) FOR UPDATE SKIP LOCKED;
