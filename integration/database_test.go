package integration

import (
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/outbox"
)

// database is a database of one test's own. Queries go through engine.sql.
type database struct {
	*sql.DB
	engine
	url  string // for the program
	name string
}

// database makes a database with outboxd's tables in it, and drops it at the end of the test.
func (e engine) database(t *testing.T) *database {
	t.Helper()
	d := e.empty(t, e)
	if _, stderr, code := outboxd(t, d.env(), "migrate", "up"); code != 0 {
		t.Fatalf("outboxd migrate up: exit code %d\n%s", code, stderr)
	}
	return d
}

func openDatabase(t *testing.T, e engine, name, url, dsn string) *database {
	t.Helper()
	db, err := sql.Open(e.driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &database{DB: db, engine: e, url: url, name: name}
}

// env leads the program to the database.
func (d *database) env() []string { return []string{"OUTBOXD_DATABASE_URL=" + d.url} }

// exec runs a statement that has to succeed.
func (d *database) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	if _, err := d.ExecContext(t.Context(), d.sql(query), args...); err != nil {
		t.Fatalf("%v\nin %s", err, query)
	}
}

// read scans the single row of a query into dest.
func (d *database) read(t *testing.T, query string, dest ...any) {
	t.Helper()
	if err := d.QueryRowContext(t.Context(), d.sql(query)).Scan(dest...); err != nil {
		t.Fatalf("%v\nin %s", err, query)
	}
}

// texts is the only column of a query.
func (d *database) texts(t *testing.T, query string, args ...any) []string {
	t.Helper()
	var all []string
	for _, row := range d.rows(t, query, args...) {
		all = append(all, row[0])
	}
	return all
}

// rows are all values of a query as texts, NULL as <nil>.
func (d *database) rows(t *testing.T, query string, args ...any) [][]string {
	t.Helper()
	found, err := d.QueryContext(t.Context(), d.sql(query), args...)
	if err != nil {
		t.Fatalf("%v\nin %s", err, query)
	}
	defer found.Close()
	columns, err := found.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for found.Next() {
		values, pointers := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			pointers[i] = &values[i]
		}
		if err := found.Scan(pointers...); err != nil {
			t.Fatal(err)
		}
		row := make([]string, len(columns))
		for i, value := range values {
			if row[i] = value.String; !value.Valid {
				row[i] = "<nil>"
			}
		}
		all = append(all, row)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// count is the number that a query returns.
func (d *database) count(t *testing.T, query string) int {
	t.Helper()
	var n int
	d.read(t, query, &n)
	return n
}

// expect checks the number that a query returns now.
func (d *database) expect(t *testing.T, want int, query string) {
	t.Helper()
	if got := d.count(t, query); got != want {
		t.Errorf("%d, want %d: %s", got, want, query)
	}
}

// waitCount waits until a query returns that number.
func (d *database) waitCount(t *testing.T, within time.Duration, want int, query string) {
	t.Helper()
	eventually(t, within, func() error {
		if got := d.count(t, query); got != want {
			return fmt.Errorf("%d, want %d: %s", got, want, query)
		}
		return nil
	})
}

// insert writes n messages of a type by plain SQL, with keys and payloads that number them, and ids that the database makes.
func (d *database) insert(t *testing.T, n int, kind string) {
	t.Helper()
	var rows []string
	for i := 1; i <= n; i++ {
		rows = append(rows, fmt.Sprintf(`('%s', '%d', '{"n":%d}')`, kind, i, i))
	}
	d.exec(t, "INSERT INTO outbox (type, aggregateid, payload) VALUES "+strings.Join(rows, ", "))
}

// write writes messages as a Go application does, in one transaction, and returns their ids.
func (d *database) write(t *testing.T, messages ...outbox.Message) []string {
	t.Helper()
	tx, err := d.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	ids, err := outbox.Table{Dialect: d.helper}.Write(t.Context(), tx, messages...)
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func rewrite(t *testing.T, text string, change func(*url.URL)) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal("the URL of a test server cannot be parsed")
	}
	change(u)
	return u.String()
}

// unique is a name that no other test or run has, good for databases and topics.
func unique(prefix string) string {
	return prefix + "_" + strings.ToLower(rand.Text()[:12])
}
