SELECT name FROM /*schema.*/outbox_relay
WHERE name <> ? AND seen_at < UTC_TIMESTAMP(6) - INTERVAL 1 DAY FOR UPDATE SKIP LOCKED;
