-- What happened to one message? All its recorded sends and lapses, of all its lives, oldest first. Name the message with
-- SET @outbox_id = '...'; without that it is the one that was last written about. Times are UTC.
SELECT a.message_id, a.life, a.attempt, a.started_at, a.duration / 1e6 AS duration_s, a.relay, a.outcome, a.status, a.error_class, a.error,
    o.state, o.reason
FROM /*schema.*/outbox_attempt a
LEFT JOIN /*schema.*/outbox o ON o.id = a.message_id
-- The variable has the session's character set; compared in the column's own, the index serves.
WHERE a.message_id = COALESCE(CONVERT(@outbox_id USING ascii) COLLATE ascii_bin,
    (SELECT message_id FROM /*schema.*/outbox_attempt ORDER BY attempt_id DESC LIMIT 1))
ORDER BY a.attempt_id;
