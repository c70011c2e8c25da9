-- What happened to one message? All its recorded sends and lapses, of all its lives, oldest first. Name the message with
-- SET outbox.id = '...'; without that it is the one that was last written about.
SELECT a.message_id, a.life, a.attempt, a.started_at, extract(epoch FROM a.duration)::float8 AS duration_s, a.relay, a.outcome, a.status, a.error_class,
    a.error, o.state, o.reason
FROM /*schema.*/outbox_attempt a
LEFT JOIN /*schema.*/outbox o ON o.id = a.message_id
WHERE a.message_id = coalesce(nullif(current_setting('outbox.id', true), '')::uuid,
    (SELECT message_id FROM /*schema.*/outbox_attempt ORDER BY attempt_id DESC LIMIT 1))
ORDER BY a.attempt_id;
