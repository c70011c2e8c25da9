INSERT INTO /*schema.*/outbox_relay (name, host, version, config_hash, destinations)
SELECT name, host, version, config_hash, destinations
FROM (SELECT ? AS name, ? AS host, ? AS version, ? AS config_hash, ? AS destinations) b
ON DUPLICATE KEY UPDATE host = b.host, version = b.version, config_hash = b.config_hash, destinations = b.destinations,
  seen_at = UTC_TIMESTAMP(6);
