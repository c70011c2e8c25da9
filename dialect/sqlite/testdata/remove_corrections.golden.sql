DELETE FROM outbox_correction WHERE operation_id = ?1
  AND id IN (SELECT id FROM outbox_correction WHERE operation_id = ?1 LIMIT ?2);
