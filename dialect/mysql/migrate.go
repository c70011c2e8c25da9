package mysql

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// engine is the folder of our files in package outboxsql.
const engine = dialect.MySQL

// Migrations returns all migrations that this outboxd knows, in order, for a database; an empty one means the one in use.
func Migrations(schema string) ([]dialect.Migration, error) {
	return dialect.Migrations(engine, func(text string) (string, error) { return render(text, schema) })
}

// Script returns a file of sql/mysql, such as roles.sql or drop.sql, for a database.
func Script(name, schema string) (string, error) {
	return dialect.Script(engine, name, func(text string) (string, error) { return render(text, schema) })
}

// lockMigrations lets one migrator at a time work on a database, for as long as its session lasts. The lock is one of the
// whole server, and MySQL takes 64 characters as its name.
const lockMigrations = `SELECT GET_LOCK(LEFT(CONCAT('outboxd migrate ', ` + inDatabase + `), 64), 3600)`

// Migrate brings the tables to the version of this outboxd and returns the files that it applied, none where there was
// nothing to do. These servers commit every CREATE by itself, so a migrator that dies leaves an unfinished schema, with
// which no relay works; running it again completes it. Two at once are safe: the second waits, and finds the work done.
// The database must be opened with a Lease of 0, since a migration may take longer than a relay's statements.
func (d *DB) Migrate(ctx context.Context) (applied []string, err error) {
	status, err := d.CheckSchema(ctx)
	if err != nil || status.State == dialect.SchemaCurrent || status.State == dialect.SchemaNewer {
		return nil, err
	}
	if status.State == dialect.SchemaRefused {
		return nil, status.Err()
	}
	migrations, err := Migrations(d.schema)
	if err != nil {
		return nil, err
	}
	conn, err := d.work.Connx(ctx)
	if err != nil {
		return nil, wrap("migrate up", err)
	}
	defer discard(conn)
	if err := d.begin(ctx, conn); err != nil {
		return nil, wrap("migrate up", err)
	}
	versions, err := d.readVersions(ctx, conn)
	if err != nil {
		return nil, wrap("migrate up", err)
	}
	for _, m := range migrations {
		if m.In(versions.finished) {
			continue
		}
		for _, statement := range split(m.SQL) {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return nil, wrap("migrate up, "+m.Name, err)
			}
		}
		applied = append(applied, m.Name)
	}
	return applied, nil
}

// begin takes the lock, and makes the database if it is named and does not exist.
func (d *DB) begin(ctx context.Context, conn *sqlx.Conn) error {
	if _, err := conn.ExecContext(ctx, "SET lock_wait_timeout = 3600"); err != nil {
		return err
	}
	var locked bool
	if err := conn.GetContext(ctx, &locked, lockMigrations, d.schema); err != nil {
		return err
	}
	if !locked {
		return dialect.Refuse(dialect.ErrSchema, "another migration has been under way in %s for an hour: look for its session, and end it", d.place)
	}
	var exists bool
	const look = `SELECT COUNT(*) > 0 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = `
	if err := conn.GetContext(ctx, &exists, look+inDatabase, d.schema); err != nil || exists {
		return err
	}
	quoted, err := quote(d.schema)
	if err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS "+quoted)
	return err
}

// discard ends the session, and with it its lock and its settings.
func discard(conn *sqlx.Conn) {
	err := conn.Raw(func(any) error { return driver.ErrBadConn })
	if !errors.Is(err, driver.ErrBadConn) {
		_ = conn.Close()
	}
}
