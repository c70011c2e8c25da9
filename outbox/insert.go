package outbox

import (
	"strconv"
	"strings"
	"time"
)

// inserts renders the rows as multi-row INSERTs. The rows of one statement get their seq in the order of its VALUES.
func (f form) inserts(table string, rows []row) []Statement {
	var statements []Statement
	for len(rows) > 0 {
		n := f.chunk(rows)
		statements = append(statements, f.insert(table, rows[:n]))
		rows = rows[n:]
	}
	return statements
}

// chunk is how many of the rows, 1 or more, go into the next statement.
func (f form) chunk(rows []row) int {
	size := rows[0].size()
	for n := 1; n < len(rows); n++ {
		size += rows[n].size()
		if n == f.maxRows || size > f.maxBytes {
			return n
		}
	}
	return len(rows)
}

// insert renders one statement. Its text depends on nothing but the table and the number of rows, so that a driver's cache
// of statements stays small.
func (f form) insert(table string, rows []row) Statement {
	var b strings.Builder
	b.WriteString("INSERT INTO " + table + " (" + f.columns + ")\nVALUES ")
	var args []any
	for i := range rows {
		if i > 0 {
			b.WriteString(",\n       ")
		}
		b.WriteString(f.placed(f.tuple, len(args)))
		args = append(args, f.args(&rows[i])...)
	}
	return Statement{SQL: b.String(), Args: args}
}

// placed returns the text with its placeholders as the database wants them, the first one numbered after that many others.
func (f form) placed(text string, after int) string {
	if !f.numbered {
		return text
	}
	var b strings.Builder
	for i, part := range strings.Split(text, "?") {
		if i > 0 {
			b.WriteString("$" + strconv.Itoa(after+i))
		}
		b.WriteString(part)
	}
	return b.String()
}

// args are the values of a row in the order of columns.
func (f form) args(r *row) []any {
	args := append(make([]any, 0, 12), r.id, f.nullText(r.aggregateType), f.nullText(r.aggregateID), f.nullText(r.typ))
	args = append(args, f.payload(r.payload)...)
	return append(args, f.nullText(r.contentType), r.schemaVersion, f.nullText(r.headers), f.nullText(r.traceparent),
		r.delay.Microseconds(), expiry(r.expiresIn))
}

func (f form) nullText(s string) any {
	if s == "" {
		return nil
	}
	return f.text(s)
}

// expiry rounds up, so that the shortest time is not never.
func expiry(d time.Duration) any {
	if d == 0 {
		return nil
	}
	return (d - 1).Microseconds() + 1
}
