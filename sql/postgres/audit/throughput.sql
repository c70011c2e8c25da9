-- How much comes in, and how much goes out? By minute, the last hour of the newest 100,000 messages: inserted, done, failed,
-- and the time from INSERT to done.
SELECT minute, sum(inserted) AS inserted, sum(done) AS done, sum(failed) AS failed,
    max(median) AS median_to_done, max(p99) AS p99_to_done
FROM (
    SELECT date_trunc('minute', created_at) AS minute, count(*) AS inserted, 0 AS done, 0 AS failed, NULL::interval AS median, NULL::interval AS p99
    FROM (SELECT created_at FROM /*schema.*/outbox ORDER BY id DESC LIMIT 100000) n GROUP BY 1
    UNION ALL
    SELECT date_trunc('minute', coalesce(done_at, failed_at)), 0, count(done_at), count(failed_at),
        percentile_cont(0.5) WITHIN GROUP (ORDER BY done_at - created_at), percentile_cont(0.99) WITHIN GROUP (ORDER BY done_at - created_at)
    FROM (SELECT created_at, done_at, failed_at FROM /*schema.*/outbox ORDER BY id DESC LIMIT 100000) n
    WHERE coalesce(done_at, failed_at) IS NOT NULL GROUP BY 1
) m
WHERE minute > clock_timestamp() - interval '1 hour'
GROUP BY minute
ORDER BY minute DESC;
