package postgres

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// engine is the folder of our files in package outboxsql.
const engine = "postgres"

// Migrations returns all migrations that this outboxd knows, in order, for a schema; an empty one means the search_path.
func Migrations(schema string) ([]dialect.Migration, error) {
	return dialect.Migrations(engine, func(text string) (string, error) { return render(text, schema) })
}

// Script returns a file of sql/postgres, such as roles.sql or drop.sql, for a schema.
func Script(name, schema string) (string, error) {
	return dialect.Script(engine, name, func(text string) (string, error) { return render(text, schema) })
}

// lockMigrations lets one migrator at a time work on a schema. The lock goes with the transaction.
const lockMigrations = `SELECT pg_advisory_xact_lock(hashtext('outboxd migrate'), hashtext(coalesce(nullif($1, ''), current_schema(), '')))`

// Migrate brings the schema to the version of this outboxd and returns the files that it applied, none where there was
// nothing to do. All of them are one transaction, so that a migrator which dies leaves nothing half made; what another tool
// left unfinished is completed. Two at once are safe: the second waits, and finds the work done. The database must be
// opened with a Lease of 0, since a migration may take longer than a relay's statements.
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
	err = d.transaction(ctx, d.work, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0"); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, lockMigrations, d.schema); err != nil {
			return err
		}
		if err := d.makeSchema(ctx, tx); err != nil {
			return err
		}
		versions, err := d.readVersions(ctx, tx)
		if err != nil {
			return err
		}
		for _, m := range migrations {
			if m.In(versions.finished) {
				continue
			}
			if _, err := tx.ExecContext(ctx, m.SQL); err != nil {
				return wrap("migrate up, "+m.Name, err)
			}
			applied = append(applied, m.Name)
		}
		return nil
	})
	if err != nil {
		return nil, wrap("migrate up", err)
	}
	return applied, nil
}

// makeSchema makes the schema if it is named and does not exist. It looks first: IF NOT EXISTS asks for the right to
// create one even where there is nothing to create.
func (d *DB) makeSchema(ctx context.Context, tx *sqlx.Tx) error {
	var exists bool
	const look = `SELECT CASE WHEN $1 = '' THEN current_schema() IS NOT NULL ELSE EXISTS (SELECT FROM pg_namespace WHERE nspname = $1) END`
	if err := tx.GetContext(ctx, &exists, look, d.schema); err != nil || exists {
		return err
	}
	if d.schema == "" {
		return dialect.Refuse(dialect.ErrShape, "the role's search_path names no schema that exists: name one in the configuration")
	}
	quoted, err := quote(d.schema)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "CREATE SCHEMA "+quoted)
	return err
}
