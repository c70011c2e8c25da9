UPDATE JSON_TABLE(?, '$[*]' COLUMNS (lease_id bigint PATH '$')) s
STRAIGHT_JOIN /*schema.*/outbox_lease l FORCE INDEX (PRIMARY) ON l.lease_id = s.lease_id
SET l.renewed_at = UTC_TIMESTAMP(6)
WHERE l.relay = ?;
