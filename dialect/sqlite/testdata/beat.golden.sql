INSERT INTO outbox_relay (name, host, version, config_hash, destinations, instance) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (name) DO UPDATE SET host = excluded.host, version = excluded.version, config_hash = excluded.config_hash,
  destinations = excluded.destinations, instance = excluded.instance, seen_at = excluded.seen_at;
