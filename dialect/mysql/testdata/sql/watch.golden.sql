SELECT CONCAT_WS(' ', @@hostname, @@port, @@server_id) AS server, CONNECTION_ID() AS session,
  CAST(@@GLOBAL.read_only AS char) AS mode,
  COALESCE(l.lease_id, 0) AS lease_id, COALESCE(l.relay, '') AS relay, COALESCE(CAST(l.renewed_at AS char), '') AS renewed_at,
  COALESCE(l.length, 0) AS length_us
FROM (SELECT 1 AS alone) answers LEFT JOIN /*schema.*/outbox_lease l ON alone = 1;
