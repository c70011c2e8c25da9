INSERT INTO /*schema.*/outbox_relay (name, host, version, config_hash, destinations, instance)
SELECT name, host, version, config_hash, destinations, instance
FROM (SELECT ? AS name, ? AS host, ? AS version, ? AS config_hash, ? AS destinations, ? AS instance) b
ON DUPLICATE KEY UPDATE host = b.host, version = b.version, config_hash = b.config_hash, destinations = b.destinations,
  instance = b.instance, seen_at = UTC_TIMESTAMP(6);
