package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// Of each routing key and value of lapses the first due messages in the index's own order, so that nothing is sorted;
// with the equality on routing_key in ORDER BY, or with FOR UPDATE outside of a materialized part, more rows than asked
// for would be locked or written. 3.1 to 3.5 ms for 500 of 100,000, whether or not it was planned on an empty table.
// octet_length reads no payload that lies in TOAST. full_to is the last due_at of a full quota, for the floor. Asked again
// under a lease that exists, it fails by the key of outbox_lease, also where nothing more is due. Where the outbox belongs to
// another instance it makes a lease without an id, and so fails by NOT NULL: whose it was on another connection says nothing
// of this one.
//
// $1 routing keys, $2 lapses, $3 limits, $4 floors, $5 length in microseconds, $6 relay, $7 lease, $8 instance.
const sqlClaim = `
WITH own AS MATERIALIZED (` + sqlOwn + `$8::text AS ours),
c AS MATERIALIZED (
  SELECT m.*, q.n
  FROM unnest($1::text[], $2::int[], $3::int[], $4::timestamptz[]) AS q(routing_key, lapses, n, floor_at)
  CROSS JOIN LATERAL (
    SELECT id, routing_key, lapses, due_at FROM /*schema.*/outbox
    WHERE routing_key = q.routing_key AND lapses = q.lapses AND due_at >= q.floor_at AND due_at <= now()
    ORDER BY lapses, due_at, seq LIMIT q.n FOR UPDATE SKIP LOCKED) m),
l AS (
  INSERT INTO /*schema.*/outbox_lease (lease_id, relay, claimed_at, renewed_at, length, ids)
  SELECT CASE WHEN (SELECT ours FROM own) THEN $7::bigint END,
    $6::text, now(), now(), $5::bigint * interval '1 microsecond', coalesce(array_agg(id ORDER BY id), '{}')
  FROM c HAVING count(*) > 0 OR NOT (SELECT ours FROM own)
    OR EXISTS (SELECT FROM /*schema.*/outbox_lease WHERE lease_id = $7::bigint))
UPDATE /*schema.*/outbox o SET state = 'in_flight', due_at = NULL, lease_id = $7::bigint
WHERE o.id = ANY (ARRAY(SELECT id FROM c))
RETURNING ` + sqlClaimed + `,
  (SELECT min(d) FROM (
    SELECT max(due_at) AS d FROM c WHERE lapses = 0 GROUP BY routing_key HAVING count(*) >= max(n)) AS full_quotas) AS full_to`

// One message alone. Not by its due_at, which others may share. $1 id, $2 length in microseconds, $3 relay, $4 lease,
// $5 instance.
const sqlClaimOne = `
WITH own AS MATERIALIZED (` + sqlOwn + `$5::text AS ours),
c AS MATERIALIZED (
  SELECT id FROM /*schema.*/outbox WHERE id = $1::uuid AND due_at <= now() FOR UPDATE SKIP LOCKED),
l AS (
  INSERT INTO /*schema.*/outbox_lease (lease_id, relay, claimed_at, renewed_at, length, ids)
  SELECT CASE WHEN (SELECT ours FROM own) THEN $4::bigint END,
    $3::text, now(), now(), $2::bigint * interval '1 microsecond', coalesce(array_agg(id), '{}')
  FROM c HAVING count(*) > 0 OR NOT (SELECT ours FROM own)
    OR EXISTS (SELECT FROM /*schema.*/outbox_lease WHERE lease_id = $4::bigint))
UPDATE /*schema.*/outbox o SET state = 'in_flight', due_at = NULL, lease_id = $4::bigint
WHERE o.id = ANY (ARRAY(SELECT id FROM c))
RETURNING ` + sqlClaimed + `, NULL::timestamptz AS full_to`

// Whether the outbox belongs to the instance that follows, or to none where that is empty. A value that somebody wrote by
// hand names none of ours, as for dialect.Inspector.
const sqlOwn = `
  SELECT coalesce((
    SELECT CASE WHEN value LIKE '{%' THEN coalesce(nullif(value::json ->> 'name', ''), value) ELSE value END
    FROM /*schema.*/outbox_control WHERE kind = 'instance' AND name = 'outbox' AND owner = ''), '') = `

// What a lease still holds, for a claim whose answer was lost. $1 lease, $2 relay.
const sqlHeld = `
SELECT ` + sqlClaimed + `, NULL::timestamptz AS full_to
FROM /*schema.*/outbox o
WHERE o.id = ANY (ARRAY(
    SELECT unnest(ids) FROM /*schema.*/outbox_lease WHERE lease_id = $1::bigint AND relay = $2::text))
  AND o.lease_id = $1::bigint AND o.state = 'in_flight'`

const sqlClaimed = `o.id, o.seq, o.routing_key, o.type, o.schema_version, o.attempts, o.lapses,
  (extract(epoch FROM CASE WHEN o.expires_at > now() THEN least(o.expires_at, now() + interval '1 year') - now()
    WHEN o.expires_at <= now() THEN interval '0' END) * 1000000)::bigint AS expires_us,
  (extract(epoch FROM now() - o.created_at) * 1000000)::bigint AS age_us,
  (extract(epoch FROM now() - o.unknown_since) * 1000000)::bigint AS unknown_us,
  coalesce(octet_length(o.payload), octet_length(o.payload_bytes), 0) + octet_length(o.headers) AS bytes`

// Claim implements relay.Store. A message that is asked for by its ID comes alone: the other quotas wait for the next claim.
func (p *Store) Claim(ctx context.Context, lease relay.LeaseID, length time.Duration, quotas []relay.Quota) ([]relay.Claim, error) {
	claims, err := p.claim(ctx, lease, length, quotas)
	if err == nil && len(claims) == 0 && p.unanswered.Has(lease) {
		claims, err = p.fence(ctx, lease, length)
	}
	if err != nil {
		p.unanswered.Add(lease, time.Now().Add(length))
	}
	return claims, err
}

func (p *Store) claim(ctx context.Context, lease relay.LeaseID, length time.Duration, quotas []relay.Quota) ([]relay.Claim, error) {
	var plain []relay.Quota
	for _, q := range quotas {
		if q.ID == "" {
			plain = append(plain, q)
			continue
		}
		if claims, err := p.claimOne(ctx, lease, length, q.ID); err != nil || len(claims) > 0 {
			return claims, err
		}
	}
	if len(plain) == 0 {
		return nil, nil
	}
	return p.claimMany(ctx, lease, length, plain)
}

func (p *Store) claimMany(ctx context.Context, lease relay.LeaseID, length time.Duration, quotas []relay.Quota) ([]relay.Claim, error) {
	if err := p.pulse(ctx); err != nil {
		return nil, err
	}
	scan := p.floors.begin(quotas, time.Now())
	claims, fullTo, err := p.claimed(ctx, lease, "claim", pq.StringArray(scan.keys), pq.Array(scan.lapses), pq.Array(scan.limits),
		pq.StringArray(scan.floors()), length.Microseconds(), p.relay, int64(lease), p.Own)
	if err != nil {
		p.floors.doubt(scan)
		return p.orHeld(ctx, lease, err)
	}
	p.floors.end(scan, claims, fullTo, time.Now())
	return claims, nil
}

func (p *Store) claimOne(ctx context.Context, lease relay.LeaseID, length time.Duration, id string) ([]relay.Claim, error) {
	if err := checkUUID(id); err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	claims, _, err := p.claimed(ctx, lease, "claim_one", id, length.Microseconds(), p.relay, int64(lease), p.Own)
	if err != nil {
		return p.orHeld(ctx, lease, err)
	}
	return claims, nil
}

// orHeld answers a claim that failed: where its lease exists, the first asking was committed, and this is the second; and
// one that has no lease is of an outbox that is not ours.
func (p *Store) orHeld(ctx context.Context, lease relay.LeaseID, err error) ([]relay.Claim, error) {
	if sqlState(err) == notNullViolation {
		return nil, fmt.Errorf("claim: %w", relay.ErrForeign)
	}
	if dialect.ClassOf(err) != dialect.Duplicate {
		return nil, err
	}
	claims, _, err := p.claimed(ctx, lease, "held", int64(lease), p.relay)
	return claims, err
}

// Takes the lease's id itself, so that no claim under it can come after. It waits for one that is under way. $1 lease,
// $2 relay, $3 length in microseconds.
const sqlFence = `
INSERT INTO /*schema.*/outbox_lease (lease_id, relay, claimed_at, renewed_at, length, ids)
VALUES ($1::bigint, $2::text, now(), now(), $3::bigint * interval '1 microsecond', '{}') ON CONFLICT (lease_id) DO NOTHING`

// fence makes sure of an empty answer to a claim that was asked for before. The server may still be at work on the first
// asking: its rows are locked and were passed over, and when it commits they would be under a lease that nobody knows of.
// The empty lease that remains goes as every lease does that nobody renews.
func (p *Store) fence(ctx context.Context, lease relay.LeaseID, length time.Duration) ([]relay.Claim, error) {
	made, err := p.work.exec(ctx, "fence", int64(lease), p.relay, length.Microseconds())
	if err != nil || made > 0 {
		return nil, err
	}
	claims, _, err := p.claimed(ctx, lease, "held", int64(lease), p.relay)
	return claims, err
}

// claimed runs a statement that returns sqlClaimed and full_to, and sorts what it returns by seq.
func (p *Store) claimed(ctx context.Context, lease relay.LeaseID, name string, args ...any) (claims []relay.Claim, fullTo time.Time, err error) {
	err = p.work.query(ctx, name, func(rows *sqlx.Rows) error {
		c := relay.Claim{Lease: lease}
		var age int64
		var expires, unknown sql.NullInt64
		var full sql.NullTime
		err := rows.Scan(&c.ID, &c.Seq, &c.RoutingKey, &c.Type, &c.SchemaVersion, &c.Attempts, &c.Lapses,
			&expires, &age, &unknown, &c.Bytes, &full)
		c.Expires, c.ExpiresIn = expires.Valid, dialect.FromMicros(expires.Int64)
		c.Age, c.Unknown, c.UnknownFor = dialect.FromMicros(age), unknown.Valid, dialect.FromMicros(unknown.Int64)
		claims, fullTo = append(claims, c), full.Time
		return err
	}, args...)
	if err != nil {
		return nil, time.Time{}, err
	}
	slices.SortFunc(claims, func(a, b relay.Claim) int { return int(a.Seq - b.Seq) })
	return claims, fullTo, nil
}

// What is to be sent, without locks. $1 ids, $2 leases.
const sqlLoad = `
SELECT id, lease_id, coalesce(send_id, id) AS wire_key, aggregatetype, aggregateid, payload, payload_bytes, content_type,
  headers, coalesce(traceparent, '') AS traceparent, created_at
FROM /*schema.*/outbox WHERE id = ANY ($1::uuid[]) AND lease_id = ANY ($2::bigint[]) AND state = 'in_flight'`

// Load implements relay.Store. The messages come in the order of the claims.
func (p *Store) Load(ctx context.Context, claims []relay.Claim) ([]relay.Message, error) {
	ids := make([]string, len(claims))
	leases := make([]int64, len(claims))
	place := make(map[string]int, len(claims))
	for i, c := range claims {
		ids[i], leases[i], place[c.ID] = c.ID, int64(c.Lease), i
	}
	loaded := make([]relay.Message, len(claims))
	err := p.work.query(ctx, "load", func(rows *sqlx.Rows) error {
		var m relay.Message
		var text, bytes []byte
		err := rows.Scan(&m.ID, &m.Lease, &m.WireKey, &m.AggregateType, &m.AggregateID, &text, &bytes, &m.ContentType,
			&m.RawHeaders, &m.Traceparent, &m.CreatedAt)
		if err != nil {
			return err
		}
		i, ok := place[m.ID]
		if !ok || claims[i].Lease != m.Lease { // ours again, but under a later lease than the claim's
			return nil
		}
		if m.Payload = text; text == nil {
			m.Payload = bytes
		}
		m.Claim, m.CreatedAt = claims[i], m.CreatedAt.UTC()
		loaded[i] = m
		return nil
	}, pq.StringArray(ids), pq.Array(distinct(leases)))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(loaded, func(m relay.Message) bool { return m.ID == "" }), nil
}

func distinct(leases []int64) []int64 {
	slices.Sort(leases)
	return slices.Compact(leases)
}
