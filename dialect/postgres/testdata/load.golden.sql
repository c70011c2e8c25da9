SELECT id, lease_id, coalesce(send_id, id) AS wire_key, aggregatetype, aggregateid, payload, payload_bytes, content_type,
  headers, coalesce(traceparent, '') AS traceparent, created_at
FROM /*schema.*/outbox WHERE id = ANY ($1::uuid[]) AND lease_id = ANY ($2::bigint[]) AND state = 'in_flight';
