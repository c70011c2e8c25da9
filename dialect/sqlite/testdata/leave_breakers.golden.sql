DELETE FROM outbox_control WHERE kind = 'breaker' AND owner = ?1;
