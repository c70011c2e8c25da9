-- What is in flight, and where? Each claim with its relay, how long ago it was made and renewed, and how many of its
-- messages have no outcome yet.
SELECT l.relay, l.lease_id, clock_timestamp() - l.claimed_at AS claimed_for, clock_timestamp() - l.renewed_at AS renewed_before, l.length,
    cardinality(l.ids) AS claimed, count(o.id) AS in_flight, (array_agg(DISTINCT o.routing_key))[1:5] AS routing_keys
FROM /*schema.*/outbox_lease l
LEFT JOIN /*schema.*/outbox o ON o.id = ANY (l.ids) AND o.lease_id = l.lease_id AND o.state = 'in_flight'
GROUP BY l.lease_id
ORDER BY l.relay, l.claimed_at;
