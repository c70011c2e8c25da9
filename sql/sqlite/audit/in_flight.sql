-- What is in flight, and where? Each claim with its relay, when it was made and renewed, and how many of its messages have
-- no outcome yet. It reads what the leases name, and nothing else.
SELECT l.relay, l.lease_id, strftime('%Y-%m-%dT%H:%M:%fZ', l.claimed_at / 1e6, 'unixepoch') AS claimed_at,
    (now - l.claimed_at) / 1000000 AS claimed_before_s, strftime('%Y-%m-%dT%H:%M:%fZ', l.renewed_at / 1e6, 'unixepoch') AS renewed_at,
    (now - l.renewed_at) / 1000000 AS renewed_before_s, l.length / 1e6 AS length_s, json_array_length(l.ids) AS claimed,
    count(o.seq) AS in_flight, group_concat(DISTINCT o.routing_key) AS routing_keys
FROM outbox_lease l
CROSS JOIN (SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AS now)
LEFT JOIN json_each(l.ids) held
LEFT JOIN outbox o ON o.seq = held.value AND o.lease_id = l.lease_id AND o.state = 'in_flight'
GROUP BY l.lease_id
ORDER BY l.relay, l.claimed_at;
