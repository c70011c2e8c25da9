-- Which messages wait longer than they should, since when and why? The 50 that have been due for the longest time.
SELECT id, routing_key, type, clock_timestamp() - due_at AS due_for, attempts, lapses, error_class, last_error
FROM /*schema.*/outbox
WHERE due_at < clock_timestamp() - interval '1 minute'
ORDER BY due_at
LIMIT 50;
