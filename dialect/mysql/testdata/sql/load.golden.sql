SELECT o.seq, o.id, COALESCE(o.send_id, o.id) AS wire_key, o.aggregatetype, o.aggregateid, o.payload, o.content_type,
  o.headers, COALESCE(o.traceparent, '') AS traceparent, o.created_at
FROM JSON_TABLE(?, '$[*]' COLUMNS (seq bigint PATH '$[0]', lease_id bigint PATH '$[1]')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
WHERE o.lease_id = s.lease_id AND o.state = 'in_flight';
