DELETE FROM outbox_operation WHERE id = ?1;
