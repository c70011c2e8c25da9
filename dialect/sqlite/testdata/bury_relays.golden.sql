DELETE FROM outbox_relay WHERE name <> ?1 AND seen_at < CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - 86400000000;
