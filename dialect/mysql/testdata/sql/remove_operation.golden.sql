DELETE FROM /*schema.*/outbox_operation WHERE id = CONVERT(? USING ascii) COLLATE ascii_bin;
