package mysql

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// sqlOld is a message that was kept for long enough. Arguments: how long done and resolved ones are kept, in microseconds.
const sqlOld = `(o.state = 'done' AND o.done_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND
    OR o.state = 'failed' AND o.resolved_at > TIMESTAMP'1000-01-01 00:00:00' AND o.resolved_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND)`

// One page of the key, which is the order of the INSERTs: where all of it is too young to be old, all behind it is.
// Arguments: those of sqlOld, the younger of these, seq, length of the page.
const sqlRemovePage = `
SELECT o.seq, ` + sqlOld + ` AS old, o.created_at > UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND AS young
FROM /*schema.*/outbox o FORCE INDEX (PRIMARY) WHERE o.seq > ? ORDER BY o.seq LIMIT ?`

// As long as somebody's operation on final messages is open, no message goes.
const sqlRemoveHeld = `
SELECT id FROM /*schema.*/outbox_operation
WHERE applied_at IS NULL AND op IN ('replay', 'correct', 'resolve') LIMIT 1`

// Locks, of the old ones, those that nobody else holds and that are so still. Arguments: messages, those of sqlOld.
const sqlRemoveLock = `
SELECT o.seq FROM (SELECT seq FROM JSON_TABLE(?, '$[*]' COLUMNS (seq bigint PATH '$')) j LIMIT 1000000) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
WHERE ` + sqlOld + ` FOR UPDATE SKIP LOCKED`

// Argument: messages.
const sqlRemoveMessages = `
DELETE o FROM JSON_TABLE(?, '$[*]' COLUMNS (seq bigint PATH '$')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
WHERE o.state IN ('done', 'failed')`

// One page of the attempts, in the order in which they were written. Those of a message that is not final stay: a correction
// asks them whether anything of it went out. Arguments: how long they are kept, attempt_id, length of the page.
const sqlRemoveAttemptsPage = `
SELECT a.attempt_id, a.started_at + INTERVAL a.duration MICROSECOND <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND AS old,
  COALESCE((SELECT o.state FROM /*schema.*/outbox o WHERE o.id = a.message_id), 'done') IN ('done', 'failed') AS ended
FROM /*schema.*/outbox_attempt a FORCE INDEX (PRIMARY) WHERE a.attempt_id > ? ORDER BY a.attempt_id LIMIT ?`

// Argument: attempts.
const sqlRemoveAttempts = `
DELETE a FROM JSON_TABLE(?, '$[*]' COLUMNS (attempt_id bigint PATH '$')) s
STRAIGHT_JOIN /*schema.*/outbox_attempt a FORCE INDEX (PRIMARY) ON a.attempt_id = s.attempt_id`

// One page of the operations, those that are applied. Arguments: how long they are kept, id, length of the page.
const sqlRemoveOperationsPage = `
SELECT id, COALESCE(applied_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND, FALSE) AS old
FROM /*schema.*/outbox_operation FORCE INDEX (PRIMARY) WHERE id > CONVERT(? USING ascii) COLLATE ascii_bin ORDER BY id LIMIT ?`

// Argument: an operation, at most so many.
const sqlRemoveCorrections = `
DELETE FROM /*schema.*/outbox_correction WHERE operation_id = CONVERT(? USING ascii) COLLATE ascii_bin LIMIT ?`

// Argument: an operation.
const sqlRemoveOperation = `
DELETE FROM /*schema.*/outbox_operation WHERE id = CONVERT(? USING ascii) COLLATE ascii_bin`

// Remove implements relay.Remover.
func (s *Store) Remove(ctx context.Context, r relay.Removal) (removed relay.Removed, err error) {
	remove := map[relay.Kept]func(context.Context, session, relay.Removal) (relay.Removed, error){
		relay.KeptMessages: removeMessages, relay.KeptAttempts: removeAttempts, relay.KeptOperations: removeOperations,
	}[r.What]
	if remove == nil {
		return removed, fmt.Errorf("remove: nothing is called %q", r.What)
	}
	err = s.work.transaction(ctx, "remove", func(ctx context.Context, tx session) error {
		removed, err = remove(ctx, tx, r)
		return err
	})
	if err != nil {
		return relay.Removed{}, err
	}
	return removed, nil
}

func removeMessages(ctx context.Context, tx session, r relay.Removal) (removed relay.Removed, err error) {
	done, resolved := r.Keep.Done.Microseconds(), r.Keep.Resolved.Microseconds()
	var old list[int64]
	var last int64
	elder := false
	err = tx.query(ctx, "remove_page", func(rows *sqlx.Rows) error {
		var isOld, young bool
		err := rows.Scan(&last, &isOld, &young)
		if isOld {
			old = append(old, last)
		}
		elder = elder || !young
		removed.Looked++
		return err
	}, done, resolved, min(done, resolved), number(r.After), r.Most)
	if err != nil {
		return removed, err
	}
	if removed.Looked == r.Most && elder {
		removed.Next = strconv.FormatInt(last, 10)
	}
	held := false
	if len(old) > 0 {
		err = tx.query(ctx, "remove_held", func(*sqlx.Rows) error { held = true; return nil })
	}
	if err != nil || held || len(old) == 0 {
		return removed, err
	}
	if removed.Gone = len(old); r.DryRun {
		return removed, nil
	}
	var free list[int64]
	err = tx.query(ctx, "remove_lock", func(rows *sqlx.Rows) error {
		var seq int64
		err := rows.Scan(&seq)
		free = append(free, seq)
		return err
	}, old.String(), done, resolved)
	if err != nil {
		return removed, err
	}
	gone, err := tx.exec(ctx, "remove_messages", free.String())
	removed.Gone = int(gone)
	return removed, err
}

// removeAttempts stops at the first page of which none is old: none behind it is.
func removeAttempts(ctx context.Context, tx session, r relay.Removal) (removed relay.Removed, err error) {
	var old list[int64]
	var last int64
	elder := false
	err = tx.query(ctx, "remove_attempts_page", func(rows *sqlx.Rows) error {
		var isOld, ended bool
		err := rows.Scan(&last, &isOld, &ended)
		if isOld && ended {
			old = append(old, last)
		}
		elder = elder || isOld
		removed.Looked++
		return err
	}, r.Keep.Attempts.Microseconds(), number(r.After), r.Most)
	if err != nil {
		return removed, err
	}
	if removed.Looked == r.Most && elder {
		removed.Next = strconv.FormatInt(last, 10)
	}
	if removed.Gone = len(old); !r.DryRun && len(old) > 0 {
		_, err = tx.exec(ctx, "remove_attempts", old.String())
	}
	return removed, err
}

// removeOperations removes their corrections first, as many as the page is long; what has some left goes another time.
func removeOperations(ctx context.Context, tx session, r relay.Removal) (removed relay.Removed, err error) {
	var old []string
	var last string
	err = tx.query(ctx, "remove_operations_page", func(rows *sqlx.Rows) error {
		var isOld bool
		err := rows.Scan(&last, &isOld)
		if isOld {
			old = append(old, last)
		}
		removed.Looked++
		return err
	}, r.Keep.Operations.Microseconds(), r.After, r.Most)
	if err != nil {
		return removed, err
	}
	if removed.Looked == r.Most {
		removed.Next = last
	}
	if r.DryRun {
		removed.Gone = len(old)
		return removed, nil
	}
	left := int64(r.Most)
	for _, id := range old {
		n, err := tx.exec(ctx, "remove_corrections", id, left)
		if err != nil {
			return removed, err
		}
		removed.Gone += int(n)
		if left -= n; left <= 0 {
			return removed, nil
		}
		if _, err := tx.exec(ctx, "remove_operation", id); err != nil {
			return removed, err
		}
		removed.Gone++
	}
	return removed, nil
}

// number is the seq or attempt_id of a place; the beginning where there is none.
func number(place string) int64 {
	n, _ := strconv.ParseInt(place, 10, 64) // a place is one that this walk gave
	return n
}
