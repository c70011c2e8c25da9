package demo

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/outbox"
)

// tables are those of the shop and of the receiver, beside the outbox.
type tables struct {
	pool   *sql.DB
	engine string
	schema string // empty: none
}

// make makes them: orders are the shop's, charges are the receiver's work, seen_keys are what it remembers.
func (t tables) make(ctx context.Context) error {
	for _, table := range []string{
		"orders (order_no integer NOT NULL PRIMARY KEY, amount varchar(20) NOT NULL, currency char(3) NOT NULL)",
		"charges (charge_no integer NOT NULL PRIMARY KEY, order_no integer NOT NULL, amount varchar(20) NOT NULL)",
		"seen_keys (wire_key varchar(64) NOT NULL PRIMARY KEY, status integer NOT NULL, answer varchar(100) NOT NULL)",
	} {
		if _, err := t.pool.ExecContext(ctx, "CREATE TABLE "+t.name("")+table); err != nil {
			return err
		}
	}
	return nil
}

// name is a table's name in SQL.
func (t tables) name(table string) string {
	if t.schema == "" {
		return table
	}
	return t.schema + "." + table
}

// sql puts the names of tables, written in braces, and the engine's placeholders into a statement.
func (t tables) sql(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "{", t.name("")), "}", "")
	if t.engine != dialect.Postgres {
		return text
	}
	var b strings.Builder
	n := 0
	for _, r := range text {
		b.WriteRune(r)
		if r == '?' {
			n++
			b.WriteString(strconv.Itoa(n))
		}
	}
	return strings.ReplaceAll(b.String(), "?", "$")
}

func (t tables) outbox() outbox.Table {
	return outbox.Table{Dialect: outbox.Dialect(t.engine), Name: t.name("outbox")}
}

// count reads one number.
func (t tables) count(ctx context.Context, query string) (n int, err error) {
	err = t.pool.QueryRowContext(ctx, t.sql(query)).Scan(&n)
	return n, err
}

// transaction runs f, and commits if it returns no error.
func (t tables) transaction(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := t.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// drop takes away the schema of a server; a file goes with its folder. It has a time of its own: a demo that was stopped
// leaves nothing behind either.
func (t tables) drop() error {
	if t.schema == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanUp)
	defer cancel()
	_, err := t.pool.ExecContext(ctx, t.dropStatement())
	return err
}

func (t tables) dropStatement() string {
	if t.engine == dialect.Postgres {
		return "DROP SCHEMA " + t.schema + " CASCADE"
	}
	return "DROP SCHEMA " + t.schema
}
