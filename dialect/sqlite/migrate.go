package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// engine is the folder of our files in package outboxsql.
const engine = "sqlite"

// Migrations returns all migrations that this outboxd knows, in order.
func Migrations() ([]dialect.Migration, error) { return dialect.Migrations(engine, asItIs) }

// Script returns a file of sql/sqlite, such as drop.sql.
func Script(name string) (string, error) { return dialect.Script(engine, name, asItIs) }

// asItIs leaves a text alone: SQLite has no schemas to put into it.
func asItIs(text string) (string, error) { return text, nil }

// patience is how long Migrate waits for others who use the file.
const patience = 30 * time.Second

// Migrate makes the file if there is none, puts it into WAL mode, brings the tables to the version of this outboxd, and
// returns the migrations that it applied, none where there was nothing to do. All of them are one transaction, so that a
// migrator which dies leaves nothing half made; what another tool left unfinished is completed. Two at once are safe: the
// second waits, for half a minute at most, and finds the work done.
func (d *DB) Migrate(ctx context.Context) (applied []string, err error) {
	pool, err := d.pool(creating, writes, busyTimeout(patience), synchronous(0))
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, pool.Close()) }()
	status, err := d.schema(ctx, pool)
	if err == nil && status.State == dialect.SchemaRefused {
		err = status.Err()
	}
	if err == nil {
		err = d.useWAL(ctx, pool)
	}
	if err != nil || status.Usable() {
		return nil, d.wrap("migrate up", err)
	}
	err = dialect.InTransaction(ctx, pool, nil, func(tx *sqlx.Tx) error {
		applied, err = d.apply(ctx, tx)
		return err
	})
	if err != nil {
		return nil, d.wrap("migrate up", err)
	}
	return applied, nil
}

// apply looks again: another migrator may have come before.
func (d *DB) apply(ctx context.Context, tx *sqlx.Tx) (applied []string, err error) {
	migrations, err := Migrations()
	if err != nil {
		return nil, err
	}
	_, finished, err := versions(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, m := range migrations {
		if m.In(finished) {
			continue
		}
		if _, err := tx.ExecContext(ctx, m.SQL); err != nil {
			return nil, d.wrap("migrate up, "+m.Name, err)
		}
		applied = append(applied, m.Name)
	}
	return applied, nil
}

// useWAL changes the mode of the file where it is another, once nobody has it open in the old mode. Of two that change it
// at once, which would wait for each other, SQLite ends one without waiting: that one tries again.
func (d *DB) useWAL(ctx context.Context, pool *sqlx.DB) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var mode string
		err := d.wrap("change to WAL mode", pool.GetContext(ctx, &mode, `PRAGMA journal_mode = WAL`))
		if err == nil && mode != "wal" {
			return dialect.Refuse(dialect.ErrServer, "SQLite cannot work in WAL mode on %s: put the file on a local disk", d.path)
		}
		if dialect.ClassOf(err) != dialect.Locked {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}
