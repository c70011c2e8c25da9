SELECT coalesce(send_id, id) AS wirekey, aggregatetype, aggregateid, payload, payload IS NOT NULL AS there, content_type AS contenttype,
  headers AS rawheaders, coalesce(traceparent, '') AS traceparent, created_at AS created_us
FROM outbox WHERE seq = ?1 AND id = ?2 AND lease_id = ?3 AND state = 'in_flight';
