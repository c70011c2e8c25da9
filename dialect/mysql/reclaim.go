package mysql

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// Only a lease that is as it was watched changes hands; a locked one is renewed or taken just now. Arguments: lease,
// renewed_at as watched.
const sqlTakeLock = `
SELECT relay FROM /*schema.*/outbox_lease WHERE lease_id = ? AND renewed_at = ? FOR UPDATE SKIP LOCKED`

// Arguments: relay, lease.
const sqlTake = `
UPDATE /*schema.*/outbox_lease SET relay = ?, renewed_at = UTC_TIMESTAMP(6) WHERE lease_id = ?`

// Take implements relay.Reclaimer.
func (s *Store) Take(ctx context.Context, lease relay.Lease) (was string, ok bool, err error) {
	err = s.keep.transaction(ctx, "take", func(ctx context.Context, tx session) error {
		err := tx.query(ctx, "take_lock", func(rows *sqlx.Rows) error {
			ok = true
			return rows.Scan(&was)
		}, int64(lease.ID), lease.Renewed)
		if err != nil || !ok {
			return err
		}
		_, err = tx.exec(ctx, "take", s.relay, int64(lease.ID))
		return err
	})
	if err != nil {
		return "", false, err
	}
	return was, ok, nil
}

// What a lease took and when, as long as it is ours: nobody may move messages by a lease that was taken from him. A claim
// that is later than now was made before the clock stepped back. Arguments: lease, relay.
const sqlMove = `
SELECT CAST(LEAST(claimed_at, UTC_TIMESTAMP(6)) AS char) AS claimed_at, ids
FROM /*schema.*/outbox_lease WHERE lease_id = ? AND relay = ?`

// Makes messages pending whose rows are locked: since the claim of their lease, or where that is NULL, as of an orphan,
// due now and unknown since they were created. Arguments: pairs of seq and lease, since, since.
const sqlLapse = `
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (seq bigint PATH '$[0]', lease_id bigint PATH '$[1]')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
SET o.state = 'pending', o.due_at = COALESCE(CAST(? AS datetime(6)), UTC_TIMESTAMP(6)), o.lease_id = -1,
  o.lapses = LEAST(o.lapses + 1, 2147483647),
  o.unknown_since = IF(o.unknown_since > TIMESTAMP'1000-01-01 00:00:00', o.unknown_since,
    COALESCE(CAST(? AS datetime(6)), o.created_at))
WHERE o.lease_id = s.lease_id AND o.state = 'in_flight'`

// After it, in the same transaction. Arguments: whose they were, since, since, the same pairs.
const sqlLapseRecord = `
INSERT INTO /*schema.*/outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome)
SELECT o.id, o.replays, o.attempts, ?, COALESCE(CAST(? AS datetime(6)), o.created_at),
  TIMESTAMPDIFF(MICROSECOND, COALESCE(CAST(? AS datetime(6)), o.created_at), UTC_TIMESTAMP(6)), 'lapse'
FROM JSON_TABLE(?, '$[*]' COLUMNS (seq bigint PATH '$[0]')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq`

// Arguments: lease, relay.
const sqlMoveLeft = `
SELECT o.id
FROM /*schema.*/outbox_lease l
STRAIGHT_JOIN JSON_TABLE(l.ids, '$[*]' COLUMNS (seq bigint PATH '$')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
WHERE l.lease_id = ? AND l.relay = ? AND o.lease_id = l.lease_id AND o.state = 'in_flight' LIMIT 1`

// Move implements relay.Reclaimer.
func (s *Store) Move(ctx context.Context, lease relay.LeaseID, was string) (moved []relay.Moved, left bool, err error) {
	err = s.work.transaction(ctx, "move", func(ctx context.Context, tx session) error {
		var claimed string
		var ids []byte
		err := tx.query(ctx, "move", func(rows *sqlx.Rows) error { return rows.Scan(&claimed, &ids) }, int64(lease), s.relay)
		if err != nil || ids == nil {
			return err
		}
		// A list that nobody can read names no message: what is in flight under the lease is an orphan once the lease is gone.
		var messages []int64
		if json.Unmarshal(ids, &messages) != nil {
			return nil
		}
		under := make(list[[2]int64], len(messages))
		for i, seq := range messages {
			under[i] = [2]int64{seq, int64(lease)}
		}
		moved, err = lapse(ctx, tx, under, was, claimed)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	err = s.work.query(ctx, "move_left", func(*sqlx.Rows) error { left = true; return nil }, int64(lease), s.relay)
	return moved, left || err != nil, err
}

// lapse makes pending those of the messages that nobody locks, and returns them. since is NULL of orphans.
func lapse(ctx context.Context, tx session, under list[[2]int64], was string, since any) (moved []relay.Moved, err error) {
	free, err := lock(ctx, tx, under)
	if err != nil || len(free) == 0 {
		return nil, err
	}
	var locked list[[2]int64]
	for _, pair := range under {
		if m, ok := free[pair[0]]; ok {
			locked, moved = append(locked, pair), append(moved, m)
		}
	}
	if _, err := tx.exec(ctx, "lapse", locked.String(), since, since); err != nil {
		return nil, err
	}
	_, err = tx.exec(ctx, "lapse_record", was, since, since, locked.String())
	return moved, err
}

// One page of the key, with a mark where a message is in flight and its lease does not exist: a claim writes both at once
// and a lease goes after its last message is settled, so no moment of an ordinary life looks like that. Arguments: seq,
// length of the page.
const sqlOrphans = `
SELECT o.seq, o.lease_id,
  o.state = 'in_flight' AND NOT EXISTS (SELECT 1 FROM /*schema.*/outbox_lease l WHERE l.lease_id = o.lease_id) AS orphan
FROM /*schema.*/outbox o FORCE INDEX (PRIMARY) WHERE o.seq > ? ORDER BY o.seq LIMIT ?`

const orphanPage = 5000

// Orphans implements relay.Reclaimer. The key is seq, so after and next are numbers. Nobody knows under whose lease an
// orphan was, so its attempt names no relay.
func (s *Store) Orphans(ctx context.Context, after string) (moved []relay.Moved, next string, err error) {
	last := int64(0)
	if after != "" {
		if last, err = strconv.ParseInt(after, 10, 64); err != nil {
			return nil, "", fmt.Errorf("orphans: a page begins after a seq, not after %.50q", after)
		}
	}
	var orphans list[[2]int64]
	read := 0
	err = s.work.query(ctx, "orphans", func(rows *sqlx.Rows) error {
		var lease int64
		var orphan bool
		err := rows.Scan(&last, &lease, &orphan)
		if orphan {
			orphans = append(orphans, [2]int64{last, lease})
		}
		read++
		return err
	}, last, orphanPage)
	if err != nil {
		return nil, "", err
	}
	if read == orphanPage {
		next = strconv.FormatInt(last, 10)
	}
	if len(orphans) == 0 {
		return nil, next, nil
	}
	err = s.work.transaction(ctx, "orphans", func(ctx context.Context, tx session) error {
		moved, err = lapse(ctx, tx, orphans, "", nil)
		return err
	})
	return moved, next, err
}
