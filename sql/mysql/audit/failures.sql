-- What has failed and needs a person? Unresolved failed messages by routing key, type, reason and error class, with the
-- last one of each as a sample. The last 10,000 of them are looked at. Times are UTC.
SELECT routing_key, type, reason, error_class, COUNT(*) AS messages, MIN(failed_at) AS first_failed_at,
    MAX(failed_at) AS last_failed_at, MAX(CASE WHEN latest = 1 THEN id END) AS sample_id,
    MAX(CASE WHEN latest = 1 THEN last_error END) AS sample_error
FROM (
    SELECT newest.*,
        ROW_NUMBER() OVER (PARTITION BY routing_key, type, reason, error_class ORDER BY failed_at DESC, seq DESC) AS latest
    FROM (
        SELECT seq, id, routing_key, type, reason, error_class, last_error, failed_at
        FROM /*schema.*/outbox FORCE INDEX (outbox_unresolved)
        WHERE resolved_at = '1000-01-01' AND failed_at > '1000-01-01' ORDER BY failed_at DESC, seq DESC LIMIT 10000
    ) newest
) unresolved
GROUP BY routing_key, type, reason, error_class
ORDER BY messages DESC, last_failed_at DESC;
