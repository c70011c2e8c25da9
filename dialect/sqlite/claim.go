package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// Of one routing key and value of lapses the first due messages in the index's own order, so that nothing is sorted.
// ?1 routing key, ?2 lapses, ?3 limit.
const sqlDue = `
SELECT seq FROM outbox INDEXED BY outbox_due
WHERE routing_key = ?1 AND lapses = ?2 AND due_at <= ` + sqlNow + `
ORDER BY lapses, due_at, seq LIMIT ?3`

// One message alone. ?1 id.
const sqlDueOne = `
SELECT seq FROM outbox WHERE id = ?1 AND due_at <= ` + sqlNow

// Whether the lease was asked for before, and answered. ?1 lease.
const sqlLease = `
SELECT relay FROM outbox_lease WHERE lease_id = ?1`

// ?1 lease, ?2 relay, ?3 length in microseconds, ?4 seqs, a JSON array.
const sqlNewLease = `
INSERT INTO outbox_lease (lease_id, relay, claimed_at, renewed_at, length, ids)
SELECT ?1, ?2, now, now, ?3, ?4 FROM (SELECT ` + sqlNow + ` AS now)`

// ?1 lease, ?2 seqs, a JSON array.
const sqlClaim = `
UPDATE outbox SET state = 'in_flight', due_at = NULL, lease_id = ?1
WHERE seq IN (SELECT value FROM json_each(?2))
RETURNING ` + sqlClaimed

// What a lease still holds, for a claim whose answer was lost. ?1 lease, ?2 relay.
const sqlHeld = `
SELECT ` + sqlClaimed + `
FROM outbox
WHERE seq IN (SELECT value FROM json_each((SELECT ids FROM outbox_lease WHERE lease_id = ?1 AND relay = ?2)))
  AND lease_id = ?1 AND state = 'in_flight'`

// octet_length reads no payload.
const sqlClaimed = `id, seq, lease_id AS lease, routing_key AS routingkey, type, schema_version AS schemaversion, attempts, lapses,
  coalesce(expires_at <= ` + sqlNow + `, 0) AS expired,
  ` + sqlNow + ` - created_at AS age_us,
  ` + sqlNow + ` - unknown_since AS unknown_us,
  coalesce(octet_length(payload), 0) + octet_length(headers) AS bytes`

// claimRow is a row of sqlClaimed.
type claimRow struct {
	relay.Claim
	AgeMicros     int64         `json:"age_us"`
	UnknownMicros sql.NullInt64 `json:"unknown_us"`
}

// Claim implements relay.Store. Asked again it finds its lease or not, and that is the whole truth: the first asking is
// over, since only one transaction at a time writes. A claim that finds nothing writes nothing and waits for no writer.
func (s *Store) Claim(ctx context.Context, lease relay.LeaseID, length time.Duration, quotas []relay.Quota) (claims []relay.Claim, err error) {
	wanted := false
	err = s.read(ctx, "claim", func(ctx context.Context, q sqlx.ExtContext) error {
		wanted, err = wants(ctx, q, lease, quotas)
		return err
	})
	if err != nil || !wanted {
		return nil, err
	}
	err = s.write(ctx, "claim", func(ctx context.Context, tx *sqlx.Tx) error {
		claims, err = s.claim(ctx, tx, lease, length, quotas)
		return err
	})
	if err != nil {
		return nil, err
	}
	return claims, nil
}

// wants tells whether there is an answer to a claim: a lease that was asked for before, or something that is due.
func wants(ctx context.Context, q sqlx.ExtContext, lease relay.LeaseID, quotas []relay.Quota) (bool, error) {
	wanted, err := exists(ctx, q, lease)
	for _, quota := range quotas {
		if err != nil || wanted {
			break
		}
		quota.Limit = 1
		var one []int64
		one, err = due(ctx, q, quota)
		wanted = len(one) > 0
	}
	return wanted, err
}

func (s *Store) claim(ctx context.Context, tx *sqlx.Tx, lease relay.LeaseID, length time.Duration, quotas []relay.Quota) ([]relay.Claim, error) {
	asked, err := exists(ctx, tx, lease)
	if err != nil {
		return nil, err
	}
	if asked {
		return claimed(ctx, tx, sqlHeld, int64(lease), s.relay)
	}
	seqs, err := due(ctx, tx, quotas...)
	if err != nil || len(seqs) == 0 {
		return nil, err
	}
	ids, err := array(seqs)
	if err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, sqlNewLease, int64(lease), s.relay, length.Microseconds(), ids); err != nil {
		return nil, err
	}
	return claimed(ctx, tx, sqlClaim, int64(lease), ids)
}

func exists(ctx context.Context, q sqlx.ExtContext, lease relay.LeaseID) (bool, error) {
	var owner string
	err := sqlx.GetContext(ctx, q, &owner, sqlLease, int64(lease))
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// due finds what the quotas ask for, each message once, by seq.
func due(ctx context.Context, q sqlx.ExtContext, quotas ...relay.Quota) (seqs []int64, err error) {
	for _, quota := range quotas {
		var found []int64
		if quota.ID != "" {
			err = sqlx.SelectContext(ctx, q, &found, sqlDueOne, quota.ID)
		} else {
			err = sqlx.SelectContext(ctx, q, &found, sqlDue, quota.RoutingKey, quota.Lapses, quota.Limit)
		}
		if err != nil {
			return nil, err
		}
		seqs = append(seqs, found...)
	}
	slices.Sort(seqs)
	return slices.Compact(seqs), nil
}

// claimed runs a statement that returns sqlClaimed, and sorts what it returns by seq.
func claimed(ctx context.Context, tx *sqlx.Tx, query string, args ...any) ([]relay.Claim, error) {
	var rows []claimRow
	if err := sqlx.SelectContext(ctx, tx, &rows, query, args...); err != nil {
		return nil, err
	}
	claims := make([]relay.Claim, len(rows))
	for i, r := range rows {
		claims[i] = r.Claim
		claims[i].Age = dialect.FromMicros(r.AgeMicros)
		claims[i].Unknown, claims[i].UnknownFor = r.UnknownMicros.Valid, dialect.FromMicros(r.UnknownMicros.Int64)
	}
	slices.SortFunc(claims, func(a, b relay.Claim) int { return cmp.Compare(a.Seq, b.Seq) })
	return claims, nil
}

// What is to be sent. The driver gives nil for an empty blob, so whether there is one is told apart. ?1 seqs, ?2 leases.
const sqlLoad = `
SELECT id, seq, lease_id AS lease, coalesce(send_id, id) AS wirekey, aggregatetype, aggregateid, payload, payload IS NOT NULL AS there,
  content_type AS contenttype, headers AS rawheaders, coalesce(traceparent, '') AS traceparent, created_at AS created_us
FROM outbox
WHERE seq IN (SELECT value FROM json_each(?1)) AND lease_id IN (SELECT value FROM json_each(?2)) AND state = 'in_flight'`

// messageRow is a row of sqlLoad.
type messageRow struct {
	relay.Message
	There         bool
	CreatedMicros int64 `json:"created_us"`
}

// Load implements relay.Store. The messages come in the order of the claims.
func (s *Store) Load(ctx context.Context, claims []relay.Claim) ([]relay.Message, error) {
	seqs, leases := make([]int64, len(claims)), make([]relay.LeaseID, len(claims))
	for i, c := range claims {
		seqs[i], leases[i] = c.Seq, c.Lease
	}
	slices.Sort(leases)
	which, err := array(seqs)
	if err != nil {
		return nil, err
	}
	under, err := array(slices.Compact(leases))
	if err != nil {
		return nil, err
	}
	var rows []messageRow
	err = s.read(ctx, "load", func(ctx context.Context, q sqlx.ExtContext) error {
		return sqlx.SelectContext(ctx, q, &rows, sqlLoad, which, under)
	})
	if err != nil {
		return nil, err
	}
	return inOrder(claims, rows), nil
}

// inOrder puts what was loaded beside its claim. A message that is ours again, but under another lease than the claim's,
// is left out.
func inOrder(claims []relay.Claim, rows []messageRow) []relay.Message {
	loaded := make(map[int64]relay.Message, len(rows))
	for _, r := range rows {
		m := r.Message
		m.CreatedAt = time.UnixMicro(r.CreatedMicros).UTC()
		if r.There && m.Payload == nil {
			m.Payload = []byte{}
		}
		loaded[m.Seq] = m
	}
	messages := make([]relay.Message, 0, len(rows))
	for _, c := range claims {
		if m, ok := loaded[c.Seq]; ok && m.ID == c.ID && m.Lease == c.Lease {
			m.Claim = c
			messages = append(messages, m)
		}
	}
	return messages
}
