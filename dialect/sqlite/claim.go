package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
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

// ?1 lease, ?2 seq.
const sqlClaim = `
UPDATE outbox SET state = 'in_flight', due_at = NULL, lease_id = ?1 WHERE seq = ?2
RETURNING ` + sqlClaimed

// What a lease took, for a claim whose answer was lost. ?1 lease, ?2 relay.
const sqlTaken = `
SELECT ids FROM outbox_lease WHERE lease_id = ?1 AND relay = ?2`

// One message that it still holds. ?1 lease, ?2 seq.
const sqlHeld = `
SELECT ` + sqlClaimed + `
FROM outbox WHERE seq = ?2 AND lease_id = ?1 AND state = 'in_flight'`

// octet_length reads no payload.
const sqlClaimed = `id, seq, lease_id AS lease, routing_key AS routingkey, type, schema_version AS schemaversion, attempts, lapses,
  expires_at - ` + sqlNow + ` AS expires_us,
  ` + sqlNow + ` - created_at AS age_us,
  ` + sqlNow + ` - unknown_since AS unknown_us,
  coalesce(octet_length(payload), 0) + octet_length(headers) AS bytes`

// claimRow is a row of sqlClaimed.
type claimRow struct {
	relay.Claim
	AgeMicros     int64         `json:"age_us"`
	ExpiresMicros sql.NullInt64 `json:"expires_us"`
	UnknownMicros sql.NullInt64 `json:"unknown_us"`
}

func (r claimRow) claim() relay.Claim {
	c := r.Claim
	c.Age = dialect.FromMicros(r.AgeMicros)
	c.Expires, c.ExpiresIn = r.ExpiresMicros.Valid, dialect.FromMicros(r.ExpiresMicros.Int64)
	c.Unknown, c.UnknownFor = r.UnknownMicros.Valid, dialect.FromMicros(r.UnknownMicros.Int64)
	return c
}

// Claim implements relay.Store. Asked again it finds its lease or not, and that is the whole truth: the first asking is
// over, since only one transaction at a time writes. A claim that finds nothing writes nothing and waits for no writer.
func (s *Store) Claim(ctx context.Context, lease relay.LeaseID, length time.Duration, quotas []relay.Quota) (claims []relay.Claim, err error) {
	wanted := false
	err = s.read(ctx, "claim", func(ctx context.Context, q *sqlx.DB) error {
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
		seqs, err := taken(ctx, tx, lease, s.relay)
		if err != nil {
			return nil, err
		}
		return claimed(ctx, tx, sqlHeld, lease, seqs)
	}
	seqs, err := due(ctx, tx, quotas...)
	if err != nil || len(seqs) == 0 {
		return nil, err
	}
	if err := s.Owns(ctx, tx); err != nil {
		return nil, err
	}
	ids, err := json.Marshal(seqs)
	if err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, sqlNewLease, int64(lease), s.relay, length.Microseconds(), string(ids)); err != nil {
		return nil, err
	}
	return claimed(ctx, tx, sqlClaim, lease, seqs)
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

// taken gives the messages of a lease of that relay; none where it is in other hands.
func taken(ctx context.Context, tx *sqlx.Tx, lease relay.LeaseID, relayName string) (seqs []int64, err error) {
	var ids []string
	if err := tx.SelectContext(ctx, &ids, sqlTaken, int64(lease), relayName); err != nil || len(ids) == 0 {
		return nil, err
	}
	err = json.Unmarshal([]byte(ids[0]), &seqs)
	return seqs, err
}

// claimed runs a statement that returns sqlClaimed for each of the messages.
func claimed(ctx context.Context, tx *sqlx.Tx, query string, lease relay.LeaseID, seqs []int64) ([]relay.Claim, error) {
	claims := make([]relay.Claim, 0, len(seqs))
	err := prepared(ctx, tx, query, func(one *sqlx.Stmt) error {
		for _, seq := range seqs {
			var row claimRow
			err := one.GetContext(ctx, &row, int64(lease), seq)
			if errors.Is(err, sql.ErrNoRows) {
				continue
			}
			if err != nil {
				return err
			}
			claims = append(claims, row.claim())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return claims, nil
}
