SELECT o.id
FROM /*schema.*/outbox_lease l
STRAIGHT_JOIN JSON_TABLE(l.ids, '$[*]' COLUMNS (seq bigint PATH '$')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
WHERE l.lease_id = ? AND l.relay = ? AND o.lease_id = l.lease_id AND o.state = 'in_flight' LIMIT 1;
