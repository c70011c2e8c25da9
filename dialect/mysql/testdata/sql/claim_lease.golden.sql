INSERT INTO /*schema.*/outbox_lease (lease_id, relay, claimed_at, renewed_at, length, ids)
VALUES (?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), ?, ?);
