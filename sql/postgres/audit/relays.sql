-- Which relays are there, when were they last seen, and what do they serve? One that was not seen for a minute is gone or
-- cannot reach the database. Relays with different hashes have different configurations.
SELECT r.name, r.host, r.version, clock_timestamp() - r.seen_at AS seen_before, clock_timestamp() - r.started_at AS up_for, r.config_hash,
    r.destinations, count(l.lease_id) AS leases
FROM /*schema.*/outbox_relay r
LEFT JOIN /*schema.*/outbox_lease l ON l.relay = r.name
GROUP BY r.name
ORDER BY r.name;
