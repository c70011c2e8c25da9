-- What is in flight, and where? Each claim with its relay, when it was made and renewed, and how many of its messages have
-- no outcome yet. It reads what the leases name, and nothing else.
SELECT l.relay, l.lease_id, l.claimed_at, extract(epoch FROM clock_timestamp() - l.claimed_at)::bigint AS claimed_before_s,
    l.renewed_at, extract(epoch FROM clock_timestamp() - l.renewed_at)::bigint AS renewed_before_s,
    extract(epoch FROM l.length)::float8 AS length_s, cardinality(l.ids) AS claimed, held.in_flight, held.routing_keys
FROM /*schema.*/outbox_lease l
-- Joined without the aggregates, all messages would be read: few are in flight by the planner's statistics.
CROSS JOIN LATERAL (
    SELECT count(*) AS in_flight, string_agg(DISTINCT o.routing_key, ',') AS routing_keys FROM /*schema.*/outbox o
    WHERE o.id = ANY (l.ids) AND o.lease_id = l.lease_id AND o.state = 'in_flight') held
ORDER BY l.relay, l.claimed_at;
