DELETE l FROM JSON_TABLE(?, '$[*]' COLUMNS (lease_id bigint PATH '$')) s
STRAIGHT_JOIN /*schema.*/outbox_lease l FORCE INDEX (PRIMARY) ON l.lease_id = s.lease_id
WHERE l.relay = ?;
