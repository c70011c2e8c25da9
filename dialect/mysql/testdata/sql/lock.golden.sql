SELECT o.seq, o.id, o.routing_key
FROM (SELECT seq, lease_id FROM JSON_TABLE(?, '$[*]' COLUMNS (
  seq bigint PATH '$[0]', lease_id bigint PATH '$[1]')) j LIMIT 1000000) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
WHERE o.lease_id = s.lease_id AND o.state = 'in_flight' FOR UPDATE SKIP LOCKED;
