SELECT o.seq, o.lease_id,
  o.state = 'in_flight' AND NOT EXISTS (SELECT 1 FROM /*schema.*/outbox_lease l WHERE l.lease_id = o.lease_id) AS orphan
FROM /*schema.*/outbox o FORCE INDEX (PRIMARY) WHERE o.seq > ? ORDER BY o.seq LIMIT ?;
