package postgres

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// runner runs named queries on one pool of connections, each with a deadline of its own. On connections that are ours it
// prepares them once; behind a transaction pooler, which keeps no prepared statement and no setting, it sends each in a
// transaction that begins with the settings.
//
// database/sql repeats a query on another connection when the server ended the one in hand before it answered. Every query
// of the Store bears that: a claim by its lease id, the others by their guards.
type runner struct {
	db      *DB
	pool    *sqlx.DB
	queries map[string]string
	limit   time.Duration

	mu       sync.Mutex
	prepared map[string]*sqlx.Stmt
}

// query hands each row to scan. An error that scan returns ends it.
func (r *runner) query(ctx context.Context, name string, scan func(*sqlx.Rows) error, args ...any) error {
	return r.run(ctx, name, func(ctx context.Context, s statement) error {
		rows, err := s.QueryxContext(ctx, args...)
		if err != nil {
			return err
		}
		return readAll(rows, scan)
	})
}

func readAll(rows *sqlx.Rows, scan func(*sqlx.Rows) error) error {
	defer func() { _ = rows.Close() }() // Err has told what went wrong
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// texts runs a query of one text column.
func (r *runner) texts(ctx context.Context, name string, args ...any) (all []string, err error) {
	err = r.query(ctx, name, func(rows *sqlx.Rows) error {
		var text string
		err := rows.Scan(&text)
		all = append(all, text)
		return err
	}, args...)
	return all, err
}

// exec returns how many rows the query wrote or returned.
func (r *runner) exec(ctx context.Context, name string, args ...any) (n int64, err error) {
	err = r.run(ctx, name, func(ctx context.Context, s statement) error {
		result, err := s.ExecContext(ctx, args...)
		if err != nil {
			return err
		}
		n, err = result.RowsAffected()
		return err
	})
	return n, err
}

// statement is a query that is ready to run.
type statement interface {
	QueryxContext(ctx context.Context, args ...any) (*sqlx.Rows, error)
	ExecContext(ctx context.Context, args ...any) (sql.Result, error)
}

func (r *runner) run(ctx context.Context, name string, do func(context.Context, statement) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	if r.db.pooler {
		return r.told(wrap(name, r.db.transaction(ctx, r.pool, func(tx *sqlx.Tx) error {
			return do(ctx, unprepared{tx, r.queries[name]})
		})))
	}
	s, err := r.prepare(ctx, name)
	if err != nil {
		return wrap(name, err)
	}
	return r.told(wrap(name, do(ctx, s)))
}

// told ends the connections that wait in the pools where the server said that it is read-only. One that became a standby
// may keep its sessions, which would fail for ever, while a new connection finds the primary.
func (r *runner) told(err error) error {
	if dialect.ClassOf(err) == dialect.ReadOnly {
		r.db.shed()
	}
	return err
}

// prepare returns the prepared statement, which database/sql prepares anew on each further connection that runs it. No
// lock is held while the database is asked: one call that hangs must not hold up the others.
func (r *runner) prepare(ctx context.Context, name string) (*sqlx.Stmt, error) {
	r.mu.Lock()
	s := r.prepared[name]
	r.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := r.pool.PreparexContext(ctx, r.queries[name])
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if first := r.prepared[name]; first != nil {
		return first, s.Close() //nolint:sqlclosecheck // only the loser of two that prepared at once; the winner lives as long as the runner
	}
	if r.prepared == nil {
		r.prepared = map[string]*sqlx.Stmt{}
	}
	r.prepared[name] = s
	return s, nil
}

// unprepared is a query in a transaction of a pooled connection.
type unprepared struct {
	tx   *sqlx.Tx
	text string
}

func (u unprepared) QueryxContext(ctx context.Context, args ...any) (*sqlx.Rows, error) {
	return u.tx.QueryxContext(ctx, u.text, args...)
}

func (u unprepared) ExecContext(ctx context.Context, args ...any) (sql.Result, error) {
	return u.tx.ExecContext(ctx, u.text, args...)
}
