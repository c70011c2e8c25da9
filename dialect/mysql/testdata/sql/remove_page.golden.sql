SELECT o.seq, (o.state = 'done' AND o.done_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND
    OR o.state = 'failed' AND o.resolved_at > TIMESTAMP'1000-01-01 00:00:00' AND o.resolved_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND) AS old, o.created_at > UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND AS young
FROM /*schema.*/outbox o FORCE INDEX (PRIMARY) WHERE o.seq > ? ORDER BY o.seq LIMIT ?;
