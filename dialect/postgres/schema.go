package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// CheckSchema looks at the version of the tables, without locks. The error is a database fault, a server that outboxd does
// not work on (errors.Is ErrServer), or a table outbox that is not ours (errors.Is ErrShape); what the tables lack is in
// the status.
func (d *DB) CheckSchema(ctx context.Context) (dialect.SchemaStatus, error) {
	status := dialect.SchemaStatus{State: dialect.SchemaNone, Place: d.place()}
	err := d.read(ctx, func(q sqlx.ExtContext) error {
		var err error
		if status.Server, err = checkServer(ctx, q); err != nil {
			return err
		}
		versions, err := d.readVersions(ctx, q)
		if err != nil {
			return err
		}
		migrations, err := Migrations(d.schema)
		if err != nil {
			return err
		}
		if versions.tables > 0 {
			status.State = dialect.SchemaUnfinished
		}
		status.Judge(versions.finished, migrations)
		if status.State == dialect.SchemaUnfinished && versions.outbox {
			return d.checkColumns(ctx, q, "outbox")
		}
		return nil
	})
	return status, wrap("check the schema", err)
}

// place is where the tables are, in a sentence.
func (d *DB) place() string {
	if d.schema == "" {
		return "the search_path"
	}
	return fmt.Sprintf("schema %q", d.schema)
}

// versions is what is there of the tables.
type versions struct {
	tables   int  // how many of outbox and outbox_version exist
	outbox   bool // whether outbox does
	finished []dialect.FinishedVersion
}

// readVersions looks for the tables before it reads one: a statement that fails would end the transaction.
func (d *DB) readVersions(ctx context.Context, q sqlx.ExtContext) (v versions, err error) {
	var hasVersion bool
	row := q.QueryRowxContext(ctx, `SELECT to_regclass($1) IS NOT NULL, to_regclass($2) IS NOT NULL`, d.name("outbox"), d.name("outbox_version"))
	if err := row.Scan(&v.outbox, &hasVersion); err != nil {
		return v, err
	}
	if v.outbox {
		v.tables++
	}
	if !hasVersion {
		return v, nil
	}
	v.tables++
	query, err := render(`SELECT version, admits FROM /*schema.*/outbox_version ORDER BY version`, d.schema)
	if err != nil {
		return v, err
	}
	return v, sqlx.SelectContext(ctx, q, &v.finished, query)
}

// name is a table's name as a value, for functions that take a regclass.
func (d *DB) name(table string) string {
	quoted, err := quote(d.schema)
	if err != nil {
		return table // Only an empty schema gets here: Open refuses all others that cannot be quoted.
	}
	return quoted + "." + table
}

// checkServer refuses what is not PostgreSQL 13 or later.
func checkServer(ctx context.Context, q sqlx.ExtContext) (version string, err error) {
	var full string
	var number int
	row := q.QueryRowxContext(ctx, `SELECT version(), current_setting('server_version'), current_setting('server_version_num')::integer`)
	if err := row.Scan(&full, &version, &number); err != nil {
		return "", err
	}
	version, _, _ = strings.Cut(version, " ")
	switch {
	case !strings.HasPrefix(full, "PostgreSQL "):
		return version, dialect.Refuse(dialect.ErrServer, "the server speaks PostgreSQL's protocol and is another product: outboxd needs PostgreSQL 13 or later")
	case number < 130000:
		return version, dialect.Refuse(dialect.ErrServer, "PostgreSQL %s is too old: outboxd needs 13 or later", version)
	}
	return version, nil
}
