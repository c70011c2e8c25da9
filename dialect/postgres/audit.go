package postgres

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// Audits returns the queries of sql/postgres/audit.
func (d *DB) Audits() ([]dialect.Audit, error) {
	return dialect.Audits(engine, func(text string) (string, error) { return render(text, d.schema) })
}

// Audit runs one of them. An empty id is none; errors.Is ErrNotFound where it is no UUID.
func (d *DB) Audit(ctx context.Context, a dialect.Audit, id string) (answer dialect.Answer, err error) {
	err = d.transaction(ctx, d.keep, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, `SET TRANSACTION READ ONLY`); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `SELECT set_config('outbox.id', $1, true)`, id); err != nil {
			return err
		}
		answer, err = dialect.Ask(ctx, tx, a.SQL)
		return err
	})
	err = wrap("audit "+a.Name, err)
	if id != "" && dialect.ClassOf(err) == dialect.Unreadable {
		err = dialect.Refuse(dialect.ErrNotFound, "no message has the id %.80q: it is not a UUID", id)
	}
	return answer, err
}
