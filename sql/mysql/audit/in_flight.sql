-- What is in flight, and where? Each claim with its relay, when it was made and renewed, and how many of its messages have
-- no outcome yet. It reads what the leases name, and nothing else. Times are UTC.
SELECT l.relay, l.lease_id, l.claimed_at, TIMESTAMPDIFF(SECOND, l.claimed_at, UTC_TIMESTAMP(6)) AS claimed_before_s,
    l.renewed_at, TIMESTAMPDIFF(SECOND, l.renewed_at, UTC_TIMESTAMP(6)) AS renewed_before_s, l.length / 1e6 AS length_s,
    JSON_LENGTH(l.ids) AS claimed, COUNT(o.seq) AS in_flight,
    GROUP_CONCAT(DISTINCT o.routing_key ORDER BY o.routing_key SEPARATOR ',') AS routing_keys
FROM /*schema.*/outbox_lease l
LEFT JOIN JSON_TABLE(l.ids, '$[*]' COLUMNS (seq bigint PATH '$')) held ON true
LEFT JOIN /*schema.*/outbox o ON o.seq = held.seq AND o.lease_id = l.lease_id AND o.state = 'in_flight'
GROUP BY l.relay, l.lease_id, l.claimed_at, l.renewed_at, l.length, l.ids
ORDER BY l.relay, l.claimed_at;
