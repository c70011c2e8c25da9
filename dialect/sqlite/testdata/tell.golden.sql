INSERT INTO outbox (aggregatetype, aggregateid, type, payload, traceparent)
SELECT ?3, aggregateid, ?2, json_object('id', id, 'type', type, 'state', state, 'reason', reason, 'result', result, 'attempts', attempts,
  'replays', replays, 'at', strftime('%Y-%m-%dT%H:%M:%S', coalesce(done_at, failed_at) / 1000000, 'unixepoch')
    || printf('.%06dZ', coalesce(done_at, failed_at) % 1000000)), traceparent FROM outbox WHERE seq = ?1;
