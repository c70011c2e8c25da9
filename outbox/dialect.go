package outbox

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Dialect names the kind of database that holds the table.
type Dialect string

// The databases.
const (
	// Postgres is PostgreSQL 13 or newer.
	Postgres Dialect = "postgres"
	// MySQL is MySQL 8.0.17 or newer, and MariaDB 10.6 or newer. What is written and read does not depend on the session's
	// time zone and sql_mode. Nor do texts on its character sets, which is why Write sends them as hexadecimal digits. A
	// payload is kept in every session in which character_set_client and character_set_connection are the same, as drivers
	// and SET NAMES make them; after SET CHARACTER SET they are not, and the server converts a parameter's bytes.
	MySQL Dialect = "mysql"
	// SQLite is SQLite 3.35 or newer, by any driver.
	SQLite Dialect = "sqlite"
)

// form is what differs between the databases.
type form struct {
	// columns are those that Write fills, and tuple is a row of VALUES with a ? for each argument. The database makes the
	// times: only durations go there, in microseconds, and NULL stays NULL.
	columns, tuple string
	numbered       bool // the database wants $1, $2, ... for each ?
	// maxRows and maxBytes bound a statement. A message with more bytes goes alone.
	maxRows, maxBytes int
	quote             string // around identifiers
	maxSchema         int    // the longest name of a schema, in characters

	id      func(string) (id, problem string) // the form in which an id is stored
	text    func(string) any                  // the argument of a text that is not empty
	payload func([]byte) []any                // the arguments of a payload

	selected string // state, reason, result, and created_at, done_at, failed_at, resolved_at in microseconds since 1970
}

// form returns what the dialect's name stands for.
func (d Dialect) form() (form, error) {
	switch d {
	case Postgres:
		return postgresForm(), nil
	case MySQL:
		return mysqlForm(), nil
	case SQLite:
		return sqliteForm(), nil
	}
	return form{}, fmt.Errorf("outbox: dialect %q is not known: set Dialect to outbox.Postgres, outbox.MySQL or outbox.SQLite",
		string(d))
}

// postgresForm: 1,000 rows of 12 arguments stay far below the 65,535 of the protocol. 20,000 messages took the same time
// with 100 rows a statement as with 5,000 (PostgreSQL 15, lib/pq). 4 MiB, so that neither driver nor server holds a whole
// big call at once.
func postgresForm() form {
	const now = "clock_timestamp() + ?::bigint * interval '1 microsecond'"
	return form{
		columns: "id, aggregatetype, aggregateid, type, payload, payload_bytes, content_type, schema_version, headers, " +
			"traceparent, due_at, expires_at",
		tuple:     "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, " + now + ", " + now + ")",
		numbered:  true,
		maxRows:   1000,
		maxBytes:  4 << 20,
		quote:     `"`,
		maxSchema: 63,
		id:        parseUUID,
		text:      plainText,
		payload:   textOrBytes,
		selected:  "state, reason, result" + micros("(extract(epoch FROM %s) * 1000000)::bigint"),
	}
}

// mysqlForm: 1 MiB, twice as much with escapes and hexadecimal digits, fits a max_allowed_packet of 4 MiB, which old
// servers have. An introducer like _utf8mb4 takes no placeholder, hence UNHEX. Its relay writes no NULL over a time and
// pads result with blanks, so that no row grows: 1000-01-01 stands for none.
func mysqlForm() form {
	const text, now = "CONVERT(UNHEX(?) USING utf8mb4)", "UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND"
	return form{
		columns: columnsWithBlob,
		tuple: "(?, " + text + ", " + text + ", " + text + ", ?, " + text + ", ?, " + text + ", " + text + ", " +
			now + ", " + now + ")",
		maxRows:   1000,
		maxBytes:  1 << 20,
		quote:     "`",
		maxSchema: 64,
		id:        parseID,
		text:      func(s string) any { return hex.EncodeToString([]byte(s)) },
		payload:   blob,
		selected: "state, reason, CAST(result AS BINARY)" +
			micros("TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', NULLIF(%s, TIMESTAMP'1000-01-01 00:00:00'))"),
	}
}

// sqliteForm: 90 rows have 990 arguments, and a library may be built for no more than 999. There is no network between
// statements.
func sqliteForm() form {
	const now = "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + ?"
	return form{
		columns:   columnsWithBlob,
		tuple:     "(?, ?, ?, ?, ?, ?, ?, ?, ?, " + now + ", " + now + ")",
		maxRows:   90,
		maxBytes:  4 << 20,
		quote:     `"`,
		maxSchema: 63,
		id:        parseID,
		text:      plainText,
		payload:   blob,
		selected:  "state, reason, result" + micros("%s"),
	}
}

// columnsWithBlob are the columns where payload holds all bytes.
const columnsWithBlob = "id, aggregatetype, aggregateid, type, payload, content_type, schema_version, headers, traceparent, " +
	"due_at, expires_at"

// micros are the times of a Result, each as the expression says.
func micros(expression string) string {
	var b strings.Builder
	for _, column := range []string{"created_at", "done_at", "failed_at", "resolved_at"} {
		fmt.Fprintf(&b, ", "+expression, column)
	}
	return b.String()
}

func plainText(s string) any { return s }

// textOrBytes are payload and payload_bytes: the first where text can hold the bytes, which people can read then.
func textOrBytes(p []byte) []any {
	switch {
	case p == nil:
		return []any{nil, nil}
	case utf8.Valid(p) && !strings.Contains(string(p), "\x00"):
		return []any{string(p), nil}
	}
	return []any{nil, p}
}

func blob(p []byte) []any {
	if p == nil {
		return []any{nil}
	}
	return []any{p}
}
