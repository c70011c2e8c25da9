-- How much comes in, and how much goes out? By minute, the last hour of the newest 100,000 messages: inserted, done, failed,
-- and the time from INSERT to done.
WITH newest AS (
    SELECT created_at, done_at, failed_at FROM outbox ORDER BY seq DESC LIMIT 100000
),
happened AS (
    SELECT created_at AS at, 1 AS inserted, 0 AS done, 0 AS failed, NULL AS took FROM newest
    UNION ALL
    SELECT done_at, 0, 1, 0, done_at - created_at FROM newest WHERE done_at IS NOT NULL
    UNION ALL
    SELECT failed_at, 0, 0, 1, NULL FROM newest WHERE failed_at IS NOT NULL
),
minutes AS (
    SELECT strftime('%Y-%m-%dT%H:%M:00Z', at / 1000000, 'unixepoch') AS minute, inserted, done, failed, took
    FROM happened, (SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AS now)
    WHERE at > now - 3600000000
),
ranked AS (
    SELECT *, row_number() OVER (PARTITION BY minute, done ORDER BY took) AS place, count(took) OVER (PARTITION BY minute) AS places
    FROM minutes
)
-- The place of a percentile is rounded up, by integers alone.
SELECT minute, sum(inserted) AS inserted, sum(done) AS done, sum(failed) AS failed,
    max(took) FILTER (WHERE done = 1 AND place = (places + 1) / 2) / 1e6 AS median_to_done_s,
    max(took) FILTER (WHERE done = 1 AND place = (places * 99 + 99) / 100) / 1e6 AS p99_to_done_s
FROM ranked
GROUP BY minute
ORDER BY minute DESC;
