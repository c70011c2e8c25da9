package sqlite

import (
	"context"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// CheckSchema looks at the version of the tables, without locks. The error is a database fault, as that there is no such
// file, or a table outbox that is not ours (errors.Is ErrShape); what the tables lack is in the status.
func (d *DB) CheckSchema(ctx context.Context) (status dialect.SchemaStatus, err error) {
	err = d.read(ctx, func(q sqlx.ExtContext) error {
		status, err = d.schema(ctx, q)
		return err
	})
	return status, d.wrap("check the schema", err)
}

func (d *DB) schema(ctx context.Context, q sqlx.ExtContext) (dialect.SchemaStatus, error) {
	status := dialect.SchemaStatus{State: dialect.SchemaNone, Place: d.path}
	if err := sqlx.GetContext(ctx, q, &status.Server, `SELECT 'SQLite ' || sqlite_version()`); err != nil {
		return status, err
	}
	migrations, err := Migrations()
	if err != nil {
		return status, err
	}
	outbox, finished, err := versions(ctx, q)
	if err != nil {
		return status, err
	}
	if outbox || finished != nil {
		status.State = dialect.SchemaUnfinished
	}
	status.Judge(finished, migrations)
	if status.State == dialect.SchemaUnfinished && outbox {
		return status, checkColumns(ctx, q, "outbox")
	}
	return status, nil
}

// versions tells whether there is a table outbox, and what outbox_version says; nil where it does not exist.
func versions(ctx context.Context, q sqlx.ExtContext) (outbox bool, finished []dialect.FinishedVersion, err error) {
	var names []string
	if err := sqlx.SelectContext(ctx, q, &names, `SELECT name FROM sqlite_schema WHERE name IN ('outbox', 'outbox_version')`); err != nil {
		return false, nil, err
	}
	outbox = slices.Contains(names, "outbox")
	if !slices.Contains(names, "outbox_version") {
		return outbox, nil, nil
	}
	finished = []dialect.FinishedVersion{}
	err = sqlx.SelectContext(ctx, q, &finished, `SELECT version, admits FROM outbox_version ORDER BY version`)
	return outbox, finished, err
}
