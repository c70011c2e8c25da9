package sqlite

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// Only a lease that is as it was watched changes hands. ?1 lease, ?2 relay and ?3 renewed_at as watched, ?4 the new relay.
const sqlTake = `
UPDATE outbox_lease SET relay = ?4, ` + sqlRenewedAt + `
WHERE lease_id = ?1 AND relay = ?2 AND renewed_at = CAST(?3 AS INTEGER)`

// Take implements relay.Reclaimer.
func (s *Store) Take(ctx context.Context, lease relay.Lease) (was string, ok bool, err error) {
	var taken int64
	err = s.write(ctx, "take", func(ctx context.Context, tx *sqlx.Tx) error {
		taken, err = affected(tx.ExecContext(ctx, sqlTake, int64(lease.ID), lease.Relay, lease.Renewed, s.relay))
		return err
	})
	if err != nil || taken == 0 {
		return "", false, err
	}
	return lease.Relay, true, nil
}

// What is in flight under a lease, as long as the lease is ours: nobody may move messages by a lease that was taken from
// him. A claim that is later than now was made before the clock stepped back. ?1 lease, ?2 relay.
const sqlUnder = `
  SELECT j.value AS seq, min(l.claimed_at, ` + sqlNow + `) AS since
  FROM outbox_lease l, json_each(l.ids) j WHERE l.lease_id = ?1 AND l.relay = ?2`

// ?1 lease, ?2 relay, ?3 whose it was.
const sqlRecordMove = `
INSERT INTO outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome)
SELECT o.id, o.replays, o.attempts, ?3, u.since, ` + sqlNow + ` - u.since, 'lapse'
FROM (` + sqlUnder + `) AS u CROSS JOIN outbox o WHERE o.seq = u.seq AND o.lease_id = ?1 AND o.state = 'in_flight'`

// ?1 lease, ?2 relay.
const sqlMove = `
UPDATE outbox SET state = 'pending', due_at = u.since, lease_id = -1, lapses = lapses + 1, unknown_since = coalesce(unknown_since, u.since)
FROM (` + sqlUnder + `) AS u
WHERE outbox.seq = u.seq AND outbox.lease_id = ?1 AND outbox.state = 'in_flight' RETURNING outbox.id`

// Move implements relay.Reclaimer. Nothing is ever left, since nothing is locked.
func (s *Store) Move(ctx context.Context, lease relay.LeaseID, was string) (moved []string, left bool, err error) {
	err = s.write(ctx, "move", func(ctx context.Context, tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, sqlRecordMove, int64(lease), s.relay, was); err != nil {
			return err
		}
		return sqlx.SelectContext(ctx, tx, &moved, sqlMove, int64(lease), s.relay)
	})
	if err != nil {
		return nil, false, err
	}
	return moved, false, nil
}

// One page of the key, with a mark where a message is in flight and its lease does not exist: a claim writes both at once
// and a lease goes after its last message is settled, so no moment of an ordinary life looks like that. ?1 seq, ?2 length
// of the page.
const sqlOrphans = `
SELECT seq, state = 'in_flight' AND NOT EXISTS (SELECT 1 FROM outbox_lease l WHERE l.lease_id = o.lease_id) AS orphan
FROM outbox o WHERE seq > ?1 ORDER BY seq LIMIT ?2`

// Looked at again by the one writer, the same condition is the guard. ?1 seqs, a JSON array.
const sqlOrphaned = `seq IN (SELECT value FROM json_each(?1)) AND state = 'in_flight'
  AND NOT EXISTS (SELECT 1 FROM outbox_lease l WHERE l.lease_id = outbox.lease_id)`

// ?1 seqs, a JSON array.
const sqlRecordAdopt = `
INSERT INTO outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome)
SELECT id, replays, attempts, '', created_at, max(` + sqlNow + ` - created_at, 0), 'lapse' FROM outbox WHERE ` + sqlOrphaned

// ?1 seqs, a JSON array.
const sqlAdopt = `
UPDATE outbox SET state = 'pending', due_at = ` + sqlNow + `, lease_id = -1, lapses = lapses + 1, unknown_since = coalesce(unknown_since, created_at)
WHERE ` + sqlOrphaned + ` RETURNING id`

const orphanPage = 1000

// Orphans implements relay.Reclaimer. Its key is seq. Nobody knows under whose lease an orphan was, so its attempt names
// no relay.
func (s *Store) Orphans(ctx context.Context, after string) (moved []string, next string, err error) {
	from := int64(0)
	if after != "" {
		if from, err = strconv.ParseInt(after, 10, 64); err != nil {
			return nil, "", fmt.Errorf("orphans: the place %.40q is not one that this walk gave", after)
		}
	}
	var page []struct {
		Seq    int64
		Orphan bool
	}
	err = s.read(ctx, "orphans", func(ctx context.Context, q sqlx.ExtContext) error {
		return sqlx.SelectContext(ctx, q, &page, sqlOrphans, from, orphanPage)
	})
	if err != nil {
		return nil, "", err
	}
	if len(page) == orphanPage {
		next = strconv.FormatInt(page[len(page)-1].Seq, 10)
	}
	var orphans []int64
	for _, row := range page {
		if row.Orphan {
			orphans = append(orphans, row.Seq)
		}
	}
	if len(orphans) == 0 {
		return nil, next, nil
	}
	moved, err = s.adopt(ctx, orphans)
	return moved, next, err
}

func (s *Store) adopt(ctx context.Context, orphans []int64) (moved []string, err error) {
	which, err := array(orphans)
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, "adopt", func(ctx context.Context, tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, sqlRecordAdopt, which); err != nil {
			return err
		}
		return sqlx.SelectContext(ctx, tx, &moved, sqlAdopt, which)
	})
	if err != nil {
		return nil, err
	}
	return moved, nil
}
