SELECT o.id, o.lease_id,
  o.state = 'in_flight' AND NOT EXISTS (SELECT FROM /*schema.*/outbox_lease l WHERE l.lease_id = o.lease_id) AS orphan
FROM /*schema.*/outbox o WHERE o.id >= $1::uuid AND (o.id > $1::uuid OR $2::bool) ORDER BY o.id LIMIT $3::int;
