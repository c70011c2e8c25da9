WITH gone AS (DELETE FROM /*schema.*/outbox_control WHERE kind = 'breaker' AND owner = $1::text)
DELETE FROM /*schema.*/outbox_relay WHERE name = $1::text;
