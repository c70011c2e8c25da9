package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// The first due messages of one routing key and value of lapses, in the index's own order. InnoDB locks what it reads: a
// sort would lock all that is due, and the second relay would get nothing, so the index is forced, and routing_key is not
// in ORDER BY, where MariaDB would sort if the session's collation is not the column's. Arguments: routing key, lapses,
// limit.
const sqlClaim = `
SELECT ` + sqlClaimed + `
FROM /*schema.*/outbox o FORCE INDEX (outbox_due)
WHERE o.routing_key = ? AND o.lapses = ? AND o.due_at >= ? AND o.due_at <= UTC_TIMESTAMP(6)
ORDER BY o.lapses, o.due_at, o.seq LIMIT ? FOR UPDATE SKIP LOCKED`

// One message alone. Not by its due_at, which others may share. Argument: id.
const sqlClaimOne = `
SELECT ` + sqlClaimed + `
FROM /*schema.*/outbox o FORCE INDEX (outbox_id_key)
WHERE o.id = ? AND o.due_at <= UTC_TIMESTAMP(6) FOR UPDATE SKIP LOCKED`

const sqlClaimed = `o.seq, o.id, o.routing_key, o.type, o.schema_version, o.attempts, o.lapses,
  TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), o.expires_at) AS expires_us,
  TIMESTAMPDIFF(MICROSECOND, o.created_at, UTC_TIMESTAMP(6)) AS age_us,
  TIMESTAMPDIFF(MICROSECOND, NULLIF(o.unknown_since, TIMESTAMP'1000-01-01 00:00:00'), UTC_TIMESTAMP(6)) AS unknown_us,
  COALESCE(OCTET_LENGTH(o.payload), 0) + OCTET_LENGTH(o.headers) AS bytes`

// Fails by the key where the lease exists, and makes none where the outbox belongs to another instance, or to one where the
// relay's is empty: whose it was on another connection says nothing of this one. READ COMMITTED locks nothing of
// outbox_control for that. Bytes are compared, so that no collation takes two names for one. A value that somebody wrote by
// hand names none of ours, as for dialect.Inspector. Arguments: lease, relay, length in microseconds, messages as a JSON array
// of seq, instance.
const sqlClaimLease = `
INSERT INTO /*schema.*/outbox_lease (lease_id, relay, claimed_at, renewed_at, length, ids)
SELECT ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), ?, ? FROM DUAL
WHERE COALESCE((
  SELECT COALESCE(NULLIF(CAST(IF(JSON_VALID(value), JSON_UNQUOTE(JSON_EXTRACT(value, '$.name')), NULL) AS BINARY), CAST('' AS BINARY)),
    CAST(value AS BINARY))
  FROM /*schema.*/outbox_control WHERE kind = 'instance' AND name = 'outbox' AND owner = ''), CAST('' AS BINARY)) = CAST(? AS BINARY)`

// Arguments: messages, lease.
const sqlClaimTake = `
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (seq bigint PATH '$')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
SET o.state = 'in_flight', o.due_at = TIMESTAMP'9999-12-31 00:00:00', o.lease_id = ?`

// What a lease still holds, for a claim whose answer was lost. Arguments: lease, relay.
const sqlHeld = `
SELECT ` + sqlClaimed + `
FROM /*schema.*/outbox_lease l
STRAIGHT_JOIN JSON_TABLE(l.ids, '$[*]' COLUMNS (seq bigint PATH '$')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
WHERE l.lease_id = ? AND l.relay = ? AND o.lease_id = l.lease_id AND o.state = 'in_flight'`

// Claim implements relay.Store. After an answer that was lost the server may still be at work on the first asking: its rows
// are locked and were passed over, and when it commits they would be under a lease that nobody knows of. So a claim that is
// asked again and finds nothing makes the lease row itself, which waits for the first asking, fails where that was
// committed, and lets none come after it. The empty lease goes as every lease does that nobody renews.
func (s *Store) Claim(ctx context.Context, lease relay.LeaseID, length time.Duration, quotas []relay.Quota) ([]relay.Claim, error) {
	claims, err := s.claim(ctx, lease, length, quotas)
	if err == nil && len(claims) == 0 && s.unanswered.Has(lease) {
		err = s.newLease(ctx, s.work, lease, length, nil)
	}
	if dialect.ClassOf(err) == dialect.Duplicate || err == nil && len(claims) == 0 {
		err = s.work.query(ctx, "held", readClaims(&claims, lease), int64(lease), s.relay)
	}
	if err != nil {
		s.unanswered.Add(lease, time.Now().Add(length))
		return nil, err
	}
	return claims, nil
}

func (s *Store) claim(ctx context.Context, lease relay.LeaseID, length time.Duration, quotas []relay.Quota) (claims []relay.Claim, err error) {
	if err := s.look(ctx, quotas); err != nil {
		return nil, err
	}
	err = s.work.transaction(ctx, "claim", func(ctx context.Context, tx session) error {
		for _, q := range quotas {
			if err := s.due(ctx, tx, q, readClaims(&claims, lease)); err != nil {
				return err
			}
		}
		claims = bySeq(claims)
		if len(claims) == 0 {
			return nil
		}
		ids := list[int64](seqs(claims))
		if err := s.newLease(ctx, tx, lease, length, ids); err != nil {
			return err
		}
		_, err := tx.exec(ctx, "claim_take", ids.String(), int64(lease))
		return err
	})
	if err != nil {
		s.floors.doubts(quotas)
		return nil, err
	}
	return claims, nil
}

// newLease makes a lease row for messages, unless the outbox belongs to another instance.
func (s *Store) newLease(ctx context.Context, on execer, lease relay.LeaseID, length time.Duration, ids list[int64]) error {
	made, err := on.exec(ctx, "claim_lease", int64(lease), s.relay, length.Microseconds(), ids.String(), s.Own)
	if err == nil && made == 0 {
		return fmt.Errorf("claim: %w", relay.ErrForeign)
	}
	return err
}

// execer is a runner or a transaction of it.
type execer interface {
	exec(ctx context.Context, name string, args ...any) (int64, error)
}

// due locks and reads what a quota may take.
func (s *Store) due(ctx context.Context, tx session, q relay.Quota, read func(*sqlx.Rows) error) error {
	if q.ID != "" {
		if err := checkID(q.ID); err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		return tx.query(ctx, "claim_one", read, q.ID)
	}
	began := time.Now()
	floor, sweep := s.floors.of(q, began)
	err := tx.query(ctx, "claim", read, q.RoutingKey, q.Lapses, floor, q.Limit)
	if err == nil && sweep {
		s.floors.swept(q.RoutingKey, time.Now(), time.Since(began))
	}
	return err
}

// readClaims scans sqlClaimed.
func readClaims(claims *[]relay.Claim, lease relay.LeaseID) func(*sqlx.Rows) error {
	return func(rows *sqlx.Rows) error {
		c := relay.Claim{Lease: lease}
		var age int64
		var expires, unknown sql.NullInt64
		err := rows.Scan(&c.Seq, &c.ID, &c.RoutingKey, &c.Type, &c.SchemaVersion, &c.Attempts, &c.Lapses,
			&expires, &age, &unknown, &c.Bytes)
		c.Expires, c.ExpiresIn = expires.Valid, dialect.FromMicros(expires.Int64)
		c.Age, c.Unknown, c.UnknownFor = dialect.FromMicros(age), unknown.Valid, dialect.FromMicros(unknown.Int64)
		*claims = append(*claims, c)
		return err
	}
}

// bySeq sorts, and drops what two quotas took.
func bySeq(claims []relay.Claim) []relay.Claim {
	slices.SortFunc(claims, func(a, b relay.Claim) int { return cmp.Compare(a.Seq, b.Seq) })
	return slices.CompactFunc(claims, func(a, b relay.Claim) bool { return a.Seq == b.Seq })
}

func seqs(claims []relay.Claim) []int64 {
	all := make([]int64, len(claims))
	for i, c := range claims {
		all[i] = c.Seq
	}
	return all
}

// idCharacters are those that the CHECK of the table allows.
const idCharacters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-"

// checkID refuses what no id is, before a comparison in another character set could read the whole key.
func checkID(id string) error {
	if strings.Trim(id, idCharacters) != "" {
		return fmt.Errorf("message id %.50q has a character that no id has", id)
	}
	return nil
}
