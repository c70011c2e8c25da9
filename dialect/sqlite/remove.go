package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// sqlOld is a message that was kept for long enough. As long as somebody's operation on final messages is open, none was.
// ?1, ?2 how long done and resolved ones are kept, in microseconds.
const sqlOld = `(state = 'done' AND done_at <= ` + sqlNow + ` - ?1 OR state = 'failed' AND resolved_at <= ` + sqlNow + ` - ?2)
  AND NOT EXISTS (SELECT 1 FROM outbox_operation WHERE applied_at IS NULL AND op IN ('replay', 'correct', 'resolve'))`

// One page of the key, which is the order of the INSERTs: where all of it is too young to be old, all behind it is. ?1 and
// ?2 as above, ?3 the younger of these, ?4 seq, ?5 length of the page.
const sqlRemovePage = `
SELECT seq AS place, coalesce(` + sqlOld + `, 0) AS old, created_at > ` + sqlNow + ` - ?3 AS young FROM outbox WHERE seq > ?4 ORDER BY seq LIMIT ?5`

// Looked at again by the one writer, the same condition is the guard. ?1 and ?2 as above, ?3 seq.
const sqlRemoveMessage = `
DELETE FROM outbox WHERE seq = ?3 AND ` + sqlOld

// One page of the attempts, in the order in which they were written: where all of it is young, all behind it is. Those of a
// message that is not final stay: a correction asks them whether anything of it went out. ?1 how long they are kept, ?2
// attempt_id, ?3 length of the page.
const sqlRemoveAttemptsPage = `
SELECT attempt_id AS place, started_at + duration > ` + sqlNow + ` - ?1 AS young, started_at + duration <= ` + sqlNow + ` - ?1
  AND coalesce((SELECT o.state FROM outbox o WHERE o.id = a.message_id), 'done') IN ('done', 'failed') AS old
FROM outbox_attempt a WHERE attempt_id > ?2 ORDER BY attempt_id LIMIT ?3`

// ?1 attempt_id.
const sqlRemoveAttempt = `
DELETE FROM outbox_attempt WHERE attempt_id = ?1`

// One page of the operations, those that are applied. ?1 how long they are kept, ?2 id, ?3 length of the page.
const sqlRemoveOperationsPage = `
SELECT id AS place, coalesce(applied_at <= ` + sqlNow + ` - ?1, 0) AS old, 0 AS young
FROM outbox_operation WHERE id > ?2 ORDER BY id LIMIT ?3`

// ?1 an operation, ?2 at most so many.
const sqlRemoveCorrections = `
DELETE FROM outbox_correction WHERE operation_id = ?1
  AND id IN (SELECT id FROM outbox_correction WHERE operation_id = ?1 LIMIT ?2)`

// ?1 an operation.
const sqlRemoveOperation = `
DELETE FROM outbox_operation WHERE id = ?1`

// kept is a row of a page.
type kept struct {
	Place      string
	Old, Young bool
}

// Remove implements relay.Remover. The page is read beside all writers; the file's one write lock is taken only for what is
// old.
func (s *Store) Remove(ctx context.Context, r relay.Removal) (removed relay.Removed, err error) {
	var page []kept
	query, args := pageOf(r)
	if query == "" {
		return removed, fmt.Errorf("remove: nothing is called %q", r.What)
	}
	err = s.read(ctx, "remove_page", func(ctx context.Context, q *sqlx.DB) error { return q.SelectContext(ctx, &page, query, args...) })
	if err != nil {
		return removed, err
	}
	var old []string
	elder := false
	for _, row := range page {
		if row.Old {
			old = append(old, row.Place)
		}
		elder = elder || !row.Young
	}
	removed.Looked = len(page)
	if removed.Looked == r.Most && elder {
		removed.Next = page[len(page)-1].Place
	}
	if r.DryRun || len(old) == 0 {
		removed.Gone = len(old)
		return removed, nil
	}
	err = s.write(ctx, "remove", func(ctx context.Context, tx *sqlx.Tx) error {
		removed.Gone, err = remove(ctx, tx, r, old)
		return err
	})
	if err != nil {
		return relay.Removed{}, err
	}
	return removed, nil
}

// pageOf is the query for a page of what may be removed.
func pageOf(r relay.Removal) (query string, args []any) {
	switch r.What {
	case relay.KeptMessages:
		done, resolved := r.Keep.Done.Microseconds(), r.Keep.Resolved.Microseconds()
		return sqlRemovePage, []any{done, resolved, min(done, resolved), number(r.After), r.Most}
	case relay.KeptAttempts:
		return sqlRemoveAttemptsPage, []any{r.Keep.Attempts.Microseconds(), number(r.After), r.Most}
	case relay.KeptOperations:
		return sqlRemoveOperationsPage, []any{r.Keep.Operations.Microseconds(), r.After, r.Most}
	}
	return "", nil
}

// remove removes the rows at these places and tells how many went.
func remove(ctx context.Context, tx *sqlx.Tx, r relay.Removal, old []string) (gone int, err error) {
	if r.What == relay.KeptOperations {
		return removeOperations(ctx, tx, old, r.Most)
	}
	query, args := sqlRemoveAttempt, []any{}
	if r.What == relay.KeptMessages {
		query, args = sqlRemoveMessage, []any{r.Keep.Done.Microseconds(), r.Keep.Resolved.Microseconds()}
	}
	err = prepared(ctx, tx, query, func(statement *sqlx.Stmt) error {
		for _, place := range old {
			n, err := affected(statement.ExecContext(ctx, append(slices.Clip(args), number(place))...))
			if err != nil {
				return err
			}
			gone += int(n)
		}
		return nil
	})
	return gone, err
}

// removeOperations removes their corrections first, at most so many; what has some left goes another time.
func removeOperations(ctx context.Context, tx *sqlx.Tx, old []string, most int) (gone int, err error) {
	left := int64(most)
	for _, id := range old {
		n, err := affected(tx.ExecContext(ctx, sqlRemoveCorrections, id, left))
		if err != nil {
			return gone, err
		}
		gone += int(n)
		if left -= n; left <= 0 {
			return gone, nil
		}
		if _, err := tx.ExecContext(ctx, sqlRemoveOperation, id); err != nil {
			return gone, err
		}
		gone++
	}
	return gone, nil
}

// number is the seq or attempt_id of a place; the beginning where there is none.
func number(place string) int64 {
	n, _ := strconv.ParseInt(place, 10, 64) // a place is one that this walk gave
	return n
}
