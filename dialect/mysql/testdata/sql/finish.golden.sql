DELETE /*schema.*/outbox_lease FROM JSON_TABLE(?, '$[*]' COLUMNS (lease_id bigint PATH '$')) s
STRAIGHT_JOIN /*schema.*/outbox_lease FORCE INDEX (PRIMARY) ON outbox_lease.lease_id = s.lease_id
WHERE outbox_lease.relay = ?;
