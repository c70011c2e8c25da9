package outbox

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// maxRows bounds a statement: with 12 arguments a row it stays far below the 65,535 of PostgreSQL's protocol. 20,000
	// messages took the same time with 100 rows a statement as with 5,000 (PostgreSQL 15, lib/pq).
	maxRows = 1000
	// maxBytes bounds the payloads and headers of a statement, so that neither driver nor server holds a whole big call at
	// once. A larger message goes alone.
	maxBytes = 4 << 20
)

const columns = `id, aggregatetype, aggregateid, type, payload, payload_bytes, content_type, schema_version, headers, ` +
	`traceparent, due_at, expires_at`

// tuple is a row of VALUES. The database makes the times: only durations go there, in microseconds, and NULL stays NULL.
const tuple = "($%d, $%d, $%d, $%d, $%d, $%d, $%d, $%d, $%d, $%d, " +
	"clock_timestamp() + $%d::bigint * interval '1 microsecond', " +
	"clock_timestamp() + $%d::bigint * interval '1 microsecond')"

// inserts renders the rows as multi-row INSERTs. The rows of one statement get their seq in the order of its VALUES.
func inserts(table string, rows []row) []Statement {
	var statements []Statement
	for len(rows) > 0 {
		n := chunk(rows)
		statements = append(statements, insert(table, rows[:n]))
		rows = rows[n:]
	}
	return statements
}

// chunk is how many of the rows, 1 or more, go into the next statement.
func chunk(rows []row) int {
	size := rows[0].size()
	for n := 1; n < len(rows); n++ {
		size += rows[n].size()
		if n == maxRows || size > maxBytes {
			return n
		}
	}
	return len(rows)
}

// insert renders one statement. Its text depends on nothing but the table and the number of rows, so that a driver's cache
// of statements stays small.
func insert(table string, rows []row) Statement {
	var b strings.Builder
	b.WriteString("INSERT INTO " + table + " (" + columns + ")\nVALUES ")
	var args []any
	for i := range rows {
		if i > 0 {
			b.WriteString(",\n       ")
		}
		numbers := make([]any, 0, 12)
		for _, arg := range rows[i].args() {
			args = append(args, arg)
			numbers = append(numbers, len(args))
		}
		fmt.Fprintf(&b, tuple, numbers...)
	}
	return Statement{SQL: b.String(), Args: args}
}

// args are the values of a row in the order of columns.
func (r *row) args() []any {
	text, raw := payloadColumns(r.payload)
	return []any{
		r.id, null(r.aggregateType), null(r.aggregateID), r.typ, text, raw, r.contentType, r.schemaVersion, r.headers,
		null(r.traceparent), r.delay.Microseconds(), expiry(r.expiresIn),
	}
}

// payloadColumns are payload and payload_bytes: the first where text can hold the bytes, which people can read then.
func payloadColumns(p []byte) (text, raw any) {
	switch {
	case p == nil:
		return nil, nil
	case utf8.Valid(p) && !strings.Contains(string(p), "\x00"):
		return string(p), nil
	}
	return nil, p
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// expiry rounds up, so that the shortest time is not never.
func expiry(d time.Duration) any {
	if d == 0 {
		return nil
	}
	return (d - 1).Microseconds() + 1
}
