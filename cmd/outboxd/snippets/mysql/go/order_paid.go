// Package shop pays orders.
package shop

import (
	"context"
	"database/sql"
	"strconv"

	"github.com/outboxd/outboxd/outbox"
)

// PayOrder pays an order, and writes the message that tells of it in the same transaction. Go, database/sql with go-sql-driver/mysql.
//   - Write takes the transaction: a *sql.DB, which would write outside of it, does not compile.
//   - Bytes that are not UTF-8 go where they can be kept; columns that are not set have their defaults.
//   - encoding/json keeps 12345678901234567890 in a uint64, a json.Number or a json.RawMessage, and not in an any.
func PayOrder(ctx context.Context, db *sql.DB, order int64, payload []byte) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a Commit it does nothing

	if _, err := tx.ExecContext(ctx, "UPDATE shop_order SET paid = true WHERE id = ?", order); err != nil {
		return err
	}
	_, err = outbox.Table{Dialect: outbox.MySQL}.Write(ctx, tx, outbox.Message{
		AggregateType: "orders", AggregateID: strconv.FormatInt(order, 10), Type: "order_paid", Payload: payload,
	})
	if err != nil {
		return err
	}
	return tx.Commit()
}
