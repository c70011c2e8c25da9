package dialect

import (
	"context"
	"database/sql"

	"github.com/jmoiron/sqlx"
)

// InTransaction runs f in a transaction with these options, nil for the session's own, and commits if f returns no error.
func InTransaction(ctx context.Context, pool *sqlx.DB, options *sql.TxOptions, f func(*sqlx.Tx) error) (err error) {
	tx, err := pool.BeginTxx(ctx, options)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // The first error tells more; a connection that cannot roll back is thrown away.
		}
	}()
	if err = f(tx); err != nil {
		return err
	}
	return tx.Commit()
}
