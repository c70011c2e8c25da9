INSERT INTO outbox_control (kind, name, owner, value)
SELECT 'breaker', key, ?1, value FROM json_each(?2) WHERE true
ON CONFLICT (kind, name, owner) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at;
