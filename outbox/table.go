package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Table is an outbox table. It holds no connection, may be copied, and is safe for concurrent use.
type Table struct {
	Dialect Dialect // required
	Name    string  // outbox, or schema.outbox, without quotes; "" is outbox. A schema of MySQL is a database
}

// Tx is a transaction: *sql.Tx and *sqlx.Tx are. A *sql.DB is none and does not compile, because a message written
// outside of the transaction that it belongs to is the gap that an outbox closes. Write calls ExecContext only.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	Commit() error
	Rollback() error
}

// Write inserts the messages through tx, in the order given, and returns their ids, one for each message, as the table
// holds them: UUIDs in lower case. Committing remains the caller's business. All messages are checked first: an
// *InvalidError means that nothing was sent to the database. Any other error is the database's, as an id that exists
// already, or a payload above MySQL's max_allowed_packet: roll the transaction back, since some of the messages may have
// been written. (An INSERT of your own passes over an id that exists with ON CONFLICT (id) DO NOTHING; on MySQL it fails
// with error 1062, and the transaction can go on.)
func (t Table) Write(ctx context.Context, tx Tx, msgs ...Message) (ids []string, err error) {
	statements, ids, err := t.SQL(msgs...)
	if err != nil {
		return nil, err
	}
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s.SQL, s.Args...); err != nil {
			return nil, fmt.Errorf("outbox: write to %s: %w", t.name(), err)
		}
	}
	return ids, nil
}

// Statement is one INSERT with the arguments of its placeholders, which are $1, $2, ... on PostgreSQL and ? elsewhere.
// Arguments are nil, string, []byte, int or int64; an argument that is a []byte shares the message's Payload.
type Statement struct {
	SQL  string
	Args []any
}

// SQL returns what Write would run, for those whose transaction is not a Tx (pgx, ent, GORM): run the statements in order
// in one transaction, and roll it back if one fails. No messages: no statements. ids and err are as in Write.
func (t Table) SQL(msgs ...Message) (statements []Statement, ids []string, err error) {
	f, quoted, err := t.form()
	if err != nil {
		return nil, nil, err
	}
	rows, ids, err := f.prepare(msgs)
	if err != nil {
		return nil, nil, err
	}
	return f.inserts(quoted, rows), ids, nil
}

// prepare checks all messages and gives those without an id one.
func (f form) prepare(msgs []Message) ([]row, []string, error) {
	source := idSource{now: time.Now}
	rows, ids := make([]row, len(msgs)), make([]string, len(msgs))
	seen := make(map[string]int, len(msgs))
	for i := range msgs {
		r, field, problem := msgs[i].check(f.id)
		if problem != "" {
			return nil, nil, &InvalidError{Index: i, Field: field, Problem: problem}
		}
		if r.id == "" {
			r.id = source.next()
		}
		if first, twice := seen[r.id]; twice {
			return nil, nil, &InvalidError{Index: i, Field: "id", Problem: fmt.Sprintf("the same as that of message %d", first)}
		}
		seen[r.id] = i
		rows[i], ids[i] = r, r.id
	}
	return rows, ids, nil
}

func (t Table) name() string {
	if t.Name == "" {
		return "outbox"
	}
	return t.Name
}

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

// form checks the dialect and the name, and returns the name as SQL too. A schema may have any name; the table's own is
// plain and short, because the names of its indexes are made from it.
func (t Table) form() (f form, quoted string, err error) {
	if f, err = t.Dialect.form(); err != nil {
		return form{}, "", err
	}
	name := t.name()
	dot := strings.LastIndexByte(name, '.')
	schema, table := name[:max(dot, 0)], name[dot+1:]
	switch {
	case !plainName.MatchString(table):
		err = fmt.Errorf("outbox: table name %q: want at most 40 of a-z, 0-9 and _, not starting with a digit", table)
	case dot < 0:
		return f, f.quote + table + f.quote, nil
	case schema == "" || len(schema) > f.maxSchema || strings.Contains(schema, f.quote) || !printable(schema):
		err = fmt.Errorf("outbox: schema name %q: want 1 to %d bytes, without quotes or control characters", schema, f.maxSchema)
	}
	return f, f.quote + schema + f.quote + "." + f.quote + table + f.quote, err
}
