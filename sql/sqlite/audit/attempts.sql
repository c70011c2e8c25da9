-- What happened to one message? All its recorded sends and lapses, of all its lives, oldest first. Name the message with
-- .parameter set @outbox_id "'...'"; without that it is the one that was last written about.
SELECT a.message_id, a.life, a.attempt, strftime('%Y-%m-%dT%H:%M:%fZ', a.started_at / 1e6, 'unixepoch') AS started_at,
    a.duration / 1e6 AS duration_s, a.relay, a.outcome, a.status, a.error_class, a.error, o.state, o.reason
FROM outbox_attempt a
LEFT JOIN outbox o ON o.id = a.message_id
WHERE a.message_id = coalesce(@outbox_id, (SELECT message_id FROM outbox_attempt ORDER BY attempt_id DESC LIMIT 1))
ORDER BY a.attempt_id;
