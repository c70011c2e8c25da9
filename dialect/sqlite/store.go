package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

var _ dialect.Store = (*Store)(nil)

// Store is the Store of SQLite, and with it all that the engine needs from that database. It belongs to one relay, whose
// name it writes into its leases, and is safe for concurrent use. What writes is one short transaction that begins by
// waiting for the file's one write lock, so no other process comes between its statements: no row is ever locked by
// itself, and nothing is passed over. What reads waits for nobody. An error carries the statement's name and SQLite's
// code, and no value.
type Store struct {
	*dialect.Operator
	*dialect.Gauger

	db    *DB
	relay string
	limit time.Duration // of a call
	watch watcher
}

// sqlNow is now, as the columns have it: microseconds since 1970, of which SQLite's clock gives the milliseconds. It
// stands still within one statement.
const sqlNow = `CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000`

// Store makes the Store of the relay of that name and instance, "" for none, whose leases have that length. The file is looked at by the first call
// only.
func (d *DB) Store(relayName, instance string, lease time.Duration) (dialect.Store, error) {
	return &Store{
		Operator: &dialect.Operator{Inspector: d.Inspector, Relay: relayName, Own: instance},
		Gauger:   dialect.NewGauger(d.Inspector),
		db:       d, relay: relayName,
		// A call that has no answer after a third of the lease is given up, so that a renewal can be asked for again in time.
		limit: max(lease/3, time.Second),
	}, nil
}

// Close does nothing: all connections are the DB's.
func (s *Store) Close() error { return nil }

// read runs queries that only look.
func (s *Store) read(ctx context.Context, name string, f func(context.Context, *sqlx.DB) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	return s.db.wrap(name, f(ctx, s.db.readers))
}

// write runs one transaction.
func (s *Store) write(ctx context.Context, name string, f func(context.Context, *sqlx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	return s.db.wrap(name, s.db.write(ctx, func(tx *sqlx.Tx) error { return f(ctx, tx) }))
}

// prepared prepares a statement that f runs again and again, by the key of one row each time. A statement for many rows
// (WHERE seq IN …) would be planned by what ANALYZE last saw: after one look at a table of a few rows it reads all of it,
// however long it has become. By its key a row is found in any case, at about 10 µs each.
func prepared(ctx context.Context, q sqlx.PreparerContext, query string, f func(*sqlx.Stmt) error) error {
	statement, err := sqlx.PreparexContext(ctx, q, query)
	if err != nil {
		return err
	}
	defer func() { _ = statement.Close() }() // its last run told what went wrong
	return f(statement)
}

// affected is how many rows a statement wrote.
func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
