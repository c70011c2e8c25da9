-- How much comes in, and how much goes out? By minute, the last hour of the newest 100,000 messages: inserted, done, failed,
-- and the time from INSERT to done. Times are UTC.
WITH newest AS (
    SELECT created_at, NULLIF(done_at, '1000-01-01') AS done_at, NULLIF(failed_at, '1000-01-01') AS failed_at
    FROM /*schema.*/outbox ORDER BY seq DESC LIMIT 100000
),
happened AS (
    SELECT created_at AS at, 1 AS inserted, 0 AS done, 0 AS failed, NULL AS took FROM newest
    UNION ALL
    SELECT done_at, 0, 1, 0, TIMESTAMPDIFF(MICROSECOND, created_at, done_at) FROM newest WHERE done_at IS NOT NULL
    UNION ALL
    SELECT failed_at, 0, 0, 1, NULL FROM newest WHERE failed_at IS NOT NULL
),
minutes AS (
    SELECT TIMESTAMP(DATE_FORMAT(at, '%Y-%m-%d %H:%i:00')) AS minute, inserted, done, failed, took
    FROM happened WHERE at > UTC_TIMESTAMP(6) - INTERVAL 1 HOUR
),
ranked AS (
    SELECT minutes.*, ROW_NUMBER() OVER (PARTITION BY minute, done ORDER BY took) AS place, COUNT(took) OVER (PARTITION BY minute) AS places
    FROM minutes
)
SELECT minute, CAST(SUM(inserted) AS SIGNED) AS inserted, CAST(SUM(done) AS SIGNED) AS done, CAST(SUM(failed) AS SIGNED) AS failed,
    MAX(CASE WHEN done = 1 AND place = CEIL(places * 0.5) THEN took / 1e6 END) AS median_to_done_s,
    MAX(CASE WHEN done = 1 AND place = CEIL(places * 0.99) THEN took / 1e6 END) AS p99_to_done_s
FROM ranked
GROUP BY minute
ORDER BY minute DESC;
