-- What has failed and needs a person? Unresolved failed messages by routing key, type, reason and error class, with the
-- last one of each as a sample. The last 10,000 of them are looked at.
SELECT routing_key, type, reason, error_class, count(*) AS messages,
    strftime('%Y-%m-%dT%H:%M:%fZ', min(failed_at) / 1e6, 'unixepoch') AS first_failed_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', max(failed_at) / 1e6, 'unixepoch') AS last_failed_at,
    max(id) FILTER (WHERE latest = 1) AS sample_id, max(last_error) FILTER (WHERE latest = 1) AS sample_error
FROM (
    SELECT newest.*, row_number() OVER (PARTITION BY routing_key, type, reason, error_class ORDER BY failed_at DESC, seq DESC) AS latest
    FROM (
        SELECT seq, id, routing_key, type, reason, error_class, last_error, failed_at
        FROM outbox INDEXED BY outbox_unresolved
        WHERE failed_at IS NOT NULL AND resolved_at IS NULL ORDER BY failed_at DESC, seq DESC LIMIT 10000
    ) newest
)
GROUP BY routing_key, type, reason, error_class
ORDER BY messages DESC, max(failed_at) DESC;
