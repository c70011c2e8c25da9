-- Which relays are there, when were they last seen, and what do they serve? One that was not seen for a minute is gone or
-- cannot reach the database. Relays with different hashes have different configurations.
SELECT r.name, r.host, r.version, strftime('%Y-%m-%dT%H:%M:%fZ', r.seen_at / 1e6, 'unixepoch') AS seen_at,
    (now - r.seen_at) / 1000000 AS seen_before_s, strftime('%Y-%m-%dT%H:%M:%fZ', r.started_at / 1e6, 'unixepoch') AS started_at,
    r.config_hash, r.destinations, (SELECT count(*) FROM outbox_lease l WHERE l.relay = r.name) AS leases
FROM outbox_relay r, (SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AS now)
ORDER BY r.name;
