-- How much comes in, and how much goes out? By minute, the last hour of the newest 100,000 messages: inserted, done, failed,
-- and the time from INSERT to done.
WITH newest AS (
    SELECT created_at, done_at, failed_at FROM /*schema.*/outbox ORDER BY id DESC LIMIT 100000
),
happened AS (
    SELECT created_at AS at, 1 AS inserted, 0 AS done, 0 AS failed, NULL::interval AS took FROM newest
    UNION ALL
    SELECT done_at, 0, 1, 0, done_at - created_at FROM newest WHERE done_at IS NOT NULL
    UNION ALL
    SELECT failed_at, 0, 0, 1, NULL FROM newest WHERE failed_at IS NOT NULL
)
SELECT date_trunc('minute', at) AS minute, sum(inserted) AS inserted, sum(done) AS done, sum(failed) AS failed,
    extract(epoch FROM percentile_disc(0.5) WITHIN GROUP (ORDER BY took))::float8 AS median_to_done_s,
    extract(epoch FROM percentile_disc(0.99) WITHIN GROUP (ORDER BY took))::float8 AS p99_to_done_s
FROM happened
WHERE at > clock_timestamp() - interval '1 hour'
GROUP BY minute
ORDER BY minute DESC;
