INSERT INTO /*schema.*/outbox_lease (lease_id, relay, claimed_at, renewed_at, length, ids)
VALUES ($1::bigint, $2::text, now(), now(), $3::bigint * interval '1 microsecond', '{}') ON CONFLICT (lease_id) DO NOTHING;
