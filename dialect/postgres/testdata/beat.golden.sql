INSERT INTO /*schema.*/outbox_relay (name, host, version, config_hash, destinations, instance)
VALUES ($1::text, $2::text, $3::text, $4::text, $5::text[], $6::text)
ON CONFLICT (name) DO UPDATE SET host = excluded.host, version = excluded.version,
  config_hash = excluded.config_hash, destinations = excluded.destinations, instance = excluded.instance,
  seen_at = now();
