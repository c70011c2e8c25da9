DELETE FROM /*schema.*/outbox_correction WHERE operation_id = CONVERT(? USING ascii) COLLATE ascii_bin LIMIT ?;
