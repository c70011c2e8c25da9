package mysql

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/jmoiron/sqlx"
)

// runner runs named queries on one pool of connections, each call or transaction with a deadline of its own. What ends by
// its deadline ends its connection, too; the server rolls a transaction back as soon as it sees that.
type runner struct {
	pool    *sqlx.DB
	queries map[string]string
	limit   time.Duration
}

// query hands each row to scan. An error that scan returns ends it.
func (r *runner) query(ctx context.Context, name string, scan func(*sqlx.Rows) error, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	return session{r.pool, r.queries}.query(ctx, name, scan, args...)
}

// exec returns how many rows the query found to write, whether or not it changed them.
func (r *runner) exec(ctx context.Context, name string, args ...any) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	return session{r.pool, r.queries}.exec(ctx, name, args...)
}

// transaction commits what f did if it has no error. An error of its beginning or its end has the name given.
func (r *runner) transaction(ctx context.Context, name string, f func(context.Context, session) error) error {
	return r.begin(ctx, name, nil, f)
}

// begin is a transaction with options; without any it is READ COMMITTED, as the session is.
func (r *runner) begin(ctx context.Context, name string, options *sql.TxOptions, f func(context.Context, session) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	tx, err := r.pool.BeginTxx(ctx, options)
	if err != nil {
		return wrap(name, err)
	}
	if err := f(ctx, session{tx, r.queries}); err != nil {
		_ = tx.Rollback() // The first error tells more; a connection that cannot roll back is thrown away.
		return err
	}
	return wrap(name, tx.Commit())
}

// session runs named queries on any connection of a pool, on one connection, or in a transaction.
type session struct {
	on      sqlx.ExtContext
	queries map[string]string
}

func (s session) query(ctx context.Context, name string, scan func(*sqlx.Rows) error, args ...any) error {
	rows, err := s.on.QueryxContext(ctx, s.queries[name], args...)
	if err == nil {
		err = readAll(rows, scan)
	}
	return wrap(name, err)
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

func (s session) exec(ctx context.Context, name string, args ...any) (int64, error) {
	result, err := s.on.ExecContext(ctx, s.queries[name], args...)
	if err != nil {
		return 0, wrap(name, err)
	}
	n, err := result.RowsAffected()
	return n, wrap(name, err)
}

// list is a JSON array as an argument, of numbers or of arrays. Always a string: the driver would send bytes as binary,
// which is no JSON.
type list[T any] []T

func (l list[T]) String() string {
	if len(l) == 0 {
		return "[]"
	}
	text, _ := json.Marshal([]T(l)) // numbers, texts and nil: nothing of that can fail
	return string(text)
}
