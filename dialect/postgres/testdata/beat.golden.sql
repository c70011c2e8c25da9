INSERT INTO /*schema.*/outbox_relay (name, host, version, config_hash, destinations)
VALUES ($1::text, $2::text, $3::text, $4::text, $5::text[])
ON CONFLICT (name) DO UPDATE SET host = excluded.host, version = excluded.version,
  config_hash = excluded.config_hash, destinations = excluded.destinations, seen_at = now();
