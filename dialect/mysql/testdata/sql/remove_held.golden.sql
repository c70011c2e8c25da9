SELECT id FROM /*schema.*/outbox_operation
WHERE applied_at IS NULL AND op IN ('replay', 'correct', 'resolve') LIMIT 1;
