SELECT pg_postmaster_start_time()::text || ' ' || coalesce(host(inet_server_addr()) || ' ' || inet_server_port(), '') AS server,
  pg_backend_pid() AS session, current_setting('transaction_read_only') AS read_only, coalesce(l.lease_id, 0) AS lease_id, coalesce(l.relay, '') AS relay,
  coalesce(l.renewed_at::text, '') AS renewed_at, coalesce((extract(epoch FROM l.length) * 1000000)::bigint, 0) AS length_us
FROM (VALUES (true)) AS answers(alone) LEFT JOIN /*schema.*/outbox_lease l ON alone;
