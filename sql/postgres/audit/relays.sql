-- Which relays are there, when were they last seen, and what do they serve? One that was not seen for a minute is gone or
-- cannot reach the database. Relays with different hashes have different configurations.
SELECT r.name, r.host, r.version, r.seen_at, extract(epoch FROM clock_timestamp() - r.seen_at)::bigint AS seen_before_s, r.started_at,
    r.config_hash, array_to_json(r.destinations) AS destinations,
    (SELECT count(*) FROM /*schema.*/outbox_lease l WHERE l.relay = r.name) AS leases
FROM /*schema.*/outbox_relay r
ORDER BY r.name;
