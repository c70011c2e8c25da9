WITH r AS (
  INSERT INTO /*schema.*/outbox_relay (name, host, version, config_hash, destinations)
  VALUES ($1::text, $2::text, $3::text, $4::text, $5::text[])
  ON CONFLICT (name) DO UPDATE SET host = excluded.host, version = excluded.version,
    config_hash = excluded.config_hash, destinations = excluded.destinations, seen_at = now()),
gone AS (
  DELETE FROM /*schema.*/outbox_control WHERE kind = 'breaker'
    AND (owner = $1::text AND name <> ALL ($6::text[]) OR owner <> $1::text AND updated_at < now() - interval '1 day')),
dead AS (
  DELETE FROM /*schema.*/outbox_relay WHERE name <> $1::text AND seen_at < now() - interval '1 day')
INSERT INTO /*schema.*/outbox_control (kind, name, owner, value)
SELECT 'breaker', name, $1::text, value FROM unnest($6::text[], $7::text[]) AS b(name, value)
ON CONFLICT (kind, name, owner) DO UPDATE SET value = excluded.value, updated_at = now();
