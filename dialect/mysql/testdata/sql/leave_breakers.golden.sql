DELETE FROM /*schema.*/outbox_control WHERE kind = 'breaker' AND owner = ?;
