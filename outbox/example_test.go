package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/outboxd/outboxd/outbox"
)

// An order and the message about it, in one transaction: both are there afterwards, or neither.
func ExampleTable_Write() {
	pay := func(ctx context.Context, tx outbox.Tx, order string) error {
		if _, err := tx.ExecContext(ctx, "UPDATE orders SET paid = true WHERE id = $1", order); err != nil {
			return err
		}
		orders := outbox.Table{Dialect: outbox.Postgres}
		_, err := orders.Write(ctx, tx, outbox.Message{
			AggregateType: "orders",
			AggregateID:   order,
			Type:          "order_paid",
			Payload:       []byte(`{"id":42}`),
		})
		return err
	}
	tx := &printer{}                     // in an application: tx, err := db.BeginTx(ctx, nil)
	defer func() { _ = tx.Rollback() }() // it does nothing after a commit
	if err := pay(context.Background(), tx, "42"); err != nil {
		fmt.Println(err)
		return
	}
	if err := tx.Commit(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// UPDATE orders SET paid = true WHERE id = $1
	// INSERT INTO "outbox" (12 arguments)
	// COMMIT
}

// What is wrong with a message is found before anything is sent to the database.
func ExampleTable_Write_invalid() {
	table := outbox.Table{Dialect: outbox.Postgres}
	_, err := table.Write(context.Background(), &printer{},
		outbox.Message{Type: "order_paid"},
		outbox.Message{Type: "order_paid "},
	)
	fmt.Println(err)
	// Output: outbox: message 1: type: blanks around it
}

// The statements for a transaction of pgx, ent or GORM.
func ExampleTable_SQL() {
	table := outbox.Table{Dialect: outbox.Postgres, Name: "billing.outbox"}
	statements, ids, err := table.SQL(outbox.Message{
		ID:      "0190163d-8694-739b-aea5-966c26f8ad91",
		Type:    "send_invoice",
		Payload: []byte(`{"invoice":7}`),
		Headers: map[string]string{"tenant": "acme"},
		Delay:   10 * time.Minute,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range statements {
		fmt.Println(s.SQL) // tx.Exec(ctx, s.SQL, s.Args...)
		fmt.Println(s.Args...)
	}
	fmt.Println(ids)
	// Output:
	// INSERT INTO "billing"."outbox" (id, aggregatetype, aggregateid, type, payload, payload_bytes, content_type, schema_version, headers, traceparent, due_at, expires_at)
	// VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, clock_timestamp() + $11::bigint * interval '1 microsecond', clock_timestamp() + $12::bigint * interval '1 microsecond')
	// 0190163d-8694-739b-aea5-966c26f8ad91 <nil> <nil> send_invoice {"invoice":7} <nil> application/json 1 {"tenant":"acme"} <nil> 600000000 <nil>
	// [0190163d-8694-739b-aea5-966c26f8ad91]
}

// MySQL and MariaDB: the database's name in front where the transaction stands in another one. Texts are hexadecimal digits,
// since a parameter's bytes are otherwise read in the character set of the session.
func ExampleTable_SQL_mysql() {
	table := outbox.Table{Dialect: outbox.MySQL, Name: "billing.outbox"}
	statements, _, err := table.SQL(outbox.Message{ID: "invoice-7", Type: "send_invoice", Payload: []byte(`{"invoice":7}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(statements[0].SQL)
	fmt.Printf("%q\n", statements[0].Args)
	// Output:
	// INSERT INTO `billing`.`outbox` (id, aggregatetype, aggregateid, type, payload, content_type, schema_version, headers, traceparent, due_at, expires_at)
	// VALUES (?, CONVERT(UNHEX(?) USING utf8mb4), CONVERT(UNHEX(?) USING utf8mb4), CONVERT(UNHEX(?) USING utf8mb4), ?, CONVERT(UNHEX(?) USING utf8mb4), ?, CONVERT(UNHEX(?) USING utf8mb4), CONVERT(UNHEX(?) USING utf8mb4), UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)
	// ["invoice-7" <nil> <nil> "73656e645f696e766f696365" "{\"invoice\":7}" "6170706c69636174696f6e2f6a736f6e" '\x01' "7b7d" <nil> '\x00' <nil>]
}

// SQLite: open the file so that a transaction takes the writer's place at its beginning and waits for it, as
// "file:shop.db?_txlock=immediate&_pragma=busy_timeout(5000)" of modernc.org/sqlite does.
func ExampleTable_SQL_sqlite() {
	table := outbox.Table{Dialect: outbox.SQLite}
	statements, _, err := table.SQL(outbox.Message{ID: "invoice-7", Type: "send_invoice", Payload: []byte(`{"invoice":7}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(statements[0].SQL)
	// Output:
	// INSERT INTO "outbox" (id, aggregatetype, aggregateid, type, payload, content_type, schema_version, headers, traceparent, due_at, expires_at)
	// VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + ?, CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + ?)
}

// printer is a Tx that prints instead of talking to a database.
type printer struct{ ended bool }

func (p *printer) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	if into, _, insert := strings.Cut(query, " (id,"); insert {
		query = fmt.Sprintf("%s (%d arguments)", into, len(args))
	}
	fmt.Println(query)
	return nil, nil
}

func (p *printer) Commit() error {
	p.ended = true
	fmt.Println("COMMIT")
	return nil
}

func (p *printer) Rollback() error {
	if !p.ended {
		fmt.Println("ROLLBACK")
	}
	return nil
}
