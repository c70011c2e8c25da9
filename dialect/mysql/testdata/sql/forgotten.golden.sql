SELECT TRUE AS breaker, name, owner FROM /*schema.*/outbox_control
WHERE kind = 'breaker' AND (owner = ? OR updated_at < UTC_TIMESTAMP(6) - INTERVAL 1 DAY)
UNION ALL
SELECT FALSE, name, name FROM /*schema.*/outbox_relay WHERE name <> ? AND seen_at < UTC_TIMESTAMP(6) - INTERVAL 1 DAY;
