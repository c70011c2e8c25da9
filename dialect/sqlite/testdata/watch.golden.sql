SELECT lease_id AS id, relay, CAST(renewed_at AS TEXT) AS renewed, length AS length_us FROM outbox_lease;
