package dialect

import (
	"context"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	outboxsql "github.com/outboxd/outboxd/sql"
)

// Audit is a shipped query that answers one question about an outbox. Each engine has them all, under the same names and
// with the same columns.
type Audit struct {
	Name     string // such as oldest_due
	Question string // what it answers, as its file begins
	SQL      string // as it runs in the database's own shell
}

// AuditOfOne is the audit that tells of one message: only this one heeds an id.
const AuditOfOne = "attempts"

// Answer is what an audit found: texts, numbers, booleans, times in UTC, and nil for NULL, in the order of the columns.
type Answer struct {
	Columns []string
	Rows    [][]any
}

// Audits returns the audits of an engine by their names. It needs no database. render puts in the schema.
func Audits(engine string, render func(string) (string, error)) ([]Audit, error) {
	names, err := fs.Glob(outboxsql.Files, engine+"/audit/*.sql") // fs.Glob sorts by name.
	if err != nil {
		return nil, err
	}
	audits := make([]Audit, 0, len(names))
	for _, name := range names {
		text, err := Script(engine, "audit/"+path.Base(name), render)
		if err != nil {
			return nil, err
		}
		audits = append(audits, Audit{Name: strings.TrimSuffix(path.Base(name), ".sql"), Question: question(text), SQL: text})
	}
	return audits, nil
}

// question is the beginning of the comment that opens an audit, up to its question mark.
func question(text string) string {
	words, _, _ := strings.Cut(text, "?")
	return strings.Join(strings.Fields(strings.ReplaceAll(words, "-- ", "")), " ") + "?"
}

// Ask runs the text of an audit and reads all of its answer.
func Ask(ctx context.Context, q sqlx.QueryerContext, text string, args ...any) (Answer, error) {
	rows, err := q.QueryxContext(ctx, text, args...)
	if err != nil {
		return Answer{}, err
	}
	return readAnswer(rows)
}

func readAnswer(rows *sqlx.Rows) (answer Answer, err error) {
	defer rows.Close() // Err tells what went wrong.
	if answer.Columns, err = rows.Columns(); err != nil {
		return Answer{}, err
	}
	for rows.Next() {
		row, err := rows.SliceScan()
		if err != nil {
			return Answer{}, err
		}
		for i, value := range row {
			row[i] = plain(value)
		}
		answer.Rows = append(answer.Rows, row)
	}
	return answer, rows.Err()
}

// plain is a value of a driver as people print it.
func plain(value any) any {
	switch v := value.(type) {
	case []byte:
		return string(v)
	case time.Time:
		return v.UTC()
	}
	return value
}
