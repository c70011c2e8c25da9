// Package outbox writes messages into an outbox table, in the transaction that makes them true, and reads what became of
// them: on PostgreSQL, MySQL, MariaDB and SQLite. It is all that an application imports; the standard library is all that
// it needs.
//
//	tx, err := db.BeginTx(ctx, nil)               // your transaction
//	... your own statements on tx ...
//	ids, err := table.Write(ctx, tx, outbox.Message{Type: "order_paid", Payload: body})
//	err = tx.Commit()                             // the message exists exactly if this succeeds
//	r, err := table.Result(ctx, db, ids[0])       // later: pending, in_flight, done or failed
//
// The outboxd relay sends what was committed, at least once and always under the same idempotency key, which is the
// message's id. Read message.go first, then table.go; dialect.go has what differs
// between the databases.
package outbox
