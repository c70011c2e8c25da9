package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
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

// What was claimed under a lease, as long as the lease is ours: nobody may move messages by a lease that was taken from
// him. A claim that is later than now was made before the clock stepped back. ?1 lease, ?2 relay.
const sqlHeldSince = `
SELECT ids, min(claimed_at, ` + sqlNow + `) AS since FROM outbox_lease WHERE lease_id = ?1 AND relay = ?2`

// ?1 seq, ?2 lease, ?3 since when it was claimed.
const sqlMove = `
UPDATE outbox SET state = 'pending', due_at = ?3, lease_id = -1, lapses = lapses + 1, unknown_since = coalesce(unknown_since, ?3)
WHERE seq = ?1 AND lease_id = ?2 AND state = 'in_flight' RETURNING id, routing_key, replays, attempts, ?3 AS since`

// ?1 id, ?2 replays, ?3 attempts, ?4 whose the lease was, ?5 since when.
const sqlLapse = `
INSERT INTO outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome)
VALUES (?1, ?2, ?3, ?4, ?5, max(` + sqlNow + ` - ?5, 0), 'lapse')`

// Move implements relay.Reclaimer. Nothing is ever left, since nothing is locked.
func (s *Store) Move(ctx context.Context, lease relay.LeaseID, was string) (moved []relay.Moved, left bool, err error) {
	err = s.write(ctx, "move", func(ctx context.Context, tx *sqlx.Tx) error {
		var held []struct {
			IDs   string `json:"ids"`
			Since int64
		}
		if err := tx.SelectContext(ctx, &held, sqlHeldSince, int64(lease), s.relay); err != nil || len(held) == 0 {
			return err
		}
		// A list that nobody can read names no message: what is in flight under the lease is an orphan once the lease is gone.
		var seqs []int64
		if json.Unmarshal([]byte(held[0].IDs), &seqs) != nil {
			return nil
		}
		moved, err = lapse(ctx, tx, was, sqlMove, seqs, int64(lease), held[0].Since)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return moved, false, nil
}

// lapse runs a statement that makes one message pending, for each of the messages, and writes down that a lease of them
// ended without an outcome. The statement's first argument is the seq.
func lapse(ctx context.Context, tx *sqlx.Tx, was, query string, seqs []int64, args ...any) (moved []relay.Moved, err error) {
	err = prepared(ctx, tx, query, func(move *sqlx.Stmt) error {
		return prepared(ctx, tx, sqlLapse, func(record *sqlx.Stmt) error {
			for _, seq := range seqs {
				var m struct {
					relay.Moved
					Replays, Attempts, Since int64
				}
				err := move.GetContext(ctx, &m, append([]any{seq}, args...)...)
				if errors.Is(err, sql.ErrNoRows) {
					continue
				}
				if err != nil {
					return err
				}
				if _, err := record.ExecContext(ctx, m.ID, m.Replays, m.Attempts, was, m.Since); err != nil {
					return err
				}
				moved = append(moved, m.Moved)
			}
			return nil
		})
	})
	return moved, err
}

// Is in flight, and its lease does not exist: a claim writes both at once and a lease goes after its last message is
// settled, so no moment of an ordinary life looks like that.
const sqlOrphaned = `state = 'in_flight' AND NOT EXISTS (SELECT 1 FROM outbox_lease l WHERE l.lease_id = outbox.lease_id)`

// One page of the key. ?1 seq, ?2 length of the page.
const sqlOrphans = `
SELECT seq, ` + sqlOrphaned + ` AS orphan FROM outbox WHERE seq > ?1 ORDER BY seq LIMIT ?2`

// Looked at again by the one writer, the same condition is the guard. ?1 seq.
const sqlAdopt = `
UPDATE outbox SET state = 'pending', due_at = ` + sqlNow + `, lease_id = -1, lapses = lapses + 1, unknown_since = coalesce(unknown_since, created_at)
WHERE seq = ?1 AND ` + sqlOrphaned + ` RETURNING id, routing_key, replays, attempts, created_at AS since`

const orphanPage = 1000

// Orphans implements relay.Reclaimer. Its key is seq. Nobody knows under whose lease an orphan was, so its attempt names
// no relay.
func (s *Store) Orphans(ctx context.Context, after string) (moved []relay.Moved, next string, err error) {
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
	err = s.read(ctx, "orphans", func(ctx context.Context, q *sqlx.DB) error {
		return q.SelectContext(ctx, &page, sqlOrphans, from, orphanPage)
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
	err = s.write(ctx, "adopt", func(ctx context.Context, tx *sqlx.Tx) error {
		moved, err = lapse(ctx, tx, "", sqlAdopt, orphans)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return moved, next, nil
}
