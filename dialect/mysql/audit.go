package mysql

import (
	"context"
	"database/sql"

	"github.com/outboxd/outboxd/dialect"
)

// Audits returns the queries of sql/mysql/audit.
func (d *DB) Audits() ([]dialect.Audit, error) {
	return dialect.Audits(engine, func(text string) (string, error) { return render(text, d.schema) })
}

// Audit runs one of them. An empty id is none.
func (d *DB) Audit(ctx context.Context, a dialect.Audit, id string) (answer dialect.Answer, err error) {
	answer, err = d.audit(ctx, a, id)
	return answer, wrap("audit "+a.Name, err)
}

func (d *DB) audit(ctx context.Context, a dialect.Audit, id string) (answer dialect.Answer, err error) {
	tx, err := d.keep.BeginTxx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return answer, err
	}
	defer func() { _ = tx.Rollback() }() // It only read.
	// The variable stays with the session: each audit sets it anew.
	if _, err := tx.ExecContext(ctx, `SET @outbox_id = NULLIF(?, '')`, id); err != nil {
		return answer, err
	}
	return dialect.Ask(ctx, tx, a.SQL)
}
