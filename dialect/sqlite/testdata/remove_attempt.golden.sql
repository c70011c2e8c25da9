DELETE FROM outbox_attempt WHERE attempt_id = ?1;
