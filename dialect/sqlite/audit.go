package sqlite

import (
	"context"
	"database/sql"

	"github.com/outboxd/outboxd/dialect"
)

// Audits returns the queries of sql/sqlite/audit.
func (d *DB) Audits() ([]dialect.Audit, error) { return dialect.Audits(engine, asItIs) }

// Audit runs one of them, over a connection that cannot write. An empty id is none.
func (d *DB) Audit(ctx context.Context, a dialect.Audit, id string) (answer dialect.Answer, err error) {
	answer, err = dialect.Ask(ctx, d.readers, a.SQL, sql.Named("outbox_id", sql.NullString{String: id, Valid: id != ""}))
	return answer, d.wrap("audit "+a.Name, err)
}
