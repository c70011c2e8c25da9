SELECT name, owner FROM /*schema.*/outbox_control
WHERE kind = 'breaker' AND (owner = ? OR updated_at < UTC_TIMESTAMP(6) - INTERVAL 1 DAY);
