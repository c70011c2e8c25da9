package sqlite

import (
	"context"

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
	if err := sqlx.GetContext(ctx, q, &status.Server, `SELECT sqlite_version()`); err != nil {
		return status, err
	}
	migrations, err := Migrations()
	if err != nil {
		return status, err
	}
	var tables []string
	err = sqlx.SelectContext(ctx, q, &tables, `SELECT name FROM sqlite_schema WHERE name IN ('outbox', 'outbox_version') ORDER BY name`)
	if err != nil || len(tables) == 0 {
		status.Judge(nil, migrations)
		return status, err
	}
	status.State = dialect.SchemaUnfinished
	var finished []dialect.FinishedVersion
	if tables[len(tables)-1] == "outbox_version" {
		if err := sqlx.SelectContext(ctx, q, &finished, `SELECT version, admits FROM outbox_version ORDER BY version`); err != nil {
			return status, err
		}
	}
	status.Judge(finished, migrations)
	if status.State == dialect.SchemaUnfinished && tables[0] == "outbox" {
		return status, checkColumns(ctx, q, "outbox")
	}
	return status, nil
}
