package mysql

import (
	"context"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/outbox"
)

// Write inserts messages in a transaction of their own and returns their ids, for people who enqueue by hand: an
// application writes in the transaction of its own change. A message that cannot be written is an *outbox.InvalidError.
func (d *DB) Write(ctx context.Context, messages ...outbox.Message) (ids []string, err error) {
	table := outbox.Table{Dialect: outbox.MySQL, Name: "outbox"}
	if d.schema != "" {
		table.Name = d.schema + ".outbox"
	}
	err = d.transaction(ctx, d.keep, func(tx *sqlx.Tx) error {
		ids, err = table.Write(ctx, tx, messages...)
		return err
	})
	var invalid *outbox.InvalidError
	if err != nil && !errors.As(err, &invalid) {
		return nil, wrap("write", err)
	}
	return ids, err
}
