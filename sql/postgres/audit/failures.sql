-- What has failed and needs a person? Unresolved failed messages by routing key, type, reason and error class, with the
-- last one of each as a sample. The last 10,000 of them are looked at.
SELECT routing_key, type, reason, error_class, count(*) AS messages, min(failed_at) AS first_failed_at, max(failed_at) AS last_failed_at,
    (array_agg(id ORDER BY failed_at DESC))[1] AS sample_id, (array_agg(last_error ORDER BY failed_at DESC))[1] AS sample_error
FROM (
    SELECT id, routing_key, type, reason, error_class, last_error, failed_at FROM /*schema.*/outbox
    WHERE failed_at IS NOT NULL AND resolved_at IS NULL ORDER BY failed_at DESC LIMIT 10000
) newest
GROUP BY routing_key, type, reason, error_class
ORDER BY messages DESC, last_failed_at DESC;
