DELETE FROM /*schema.*/outbox_relay WHERE name = ?;
