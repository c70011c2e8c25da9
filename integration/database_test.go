package integration

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	_ "github.com/lib/pq" // the driver "postgres"
)

// database is a database of one test's own.
type database struct {
	*sql.DB
	url  string
	name string
}

// newDatabase makes a database on the server of OUTBOXD_TEST_POSTGRES_URL with outboxd's tables in it, and drops it at
// the end of the test.
func newDatabase(t *testing.T) *database {
	t.Helper()
	d := emptyDatabase(t)
	_, stderr, code := outboxd(t, []string{"OUTBOXD_DATABASE_URL=" + d.url}, "migrate", "up")
	if code != 0 {
		t.Fatalf("outboxd migrate up: exit code %d\n%s", code, stderr)
	}
	return d
}

// emptyDatabase makes a database without any table.
func emptyDatabase(t *testing.T) *database {
	t.Helper()
	server := need(t, "OUTBOXD_TEST_POSTGRES_URL")
	name := unique("outboxd_test")
	onServer(t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() { onServer(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })

	d := &database{url: rewrite(t, server, func(u *url.URL) { u.Path = "/" + name }), name: name}
	var err error
	if d.DB, err = sql.Open("postgres", d.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// pooled is the URL of the same database through pgbouncer in transaction mode.
func (d *database) pooled(t *testing.T) string {
	t.Helper()
	return rewrite(t, need(t, "OUTBOXD_TEST_PGBOUNCER_URL"), func(u *url.URL) { u.Path = "/" + d.name })
}

// exec runs a statement that has to succeed.
func (d *database) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	if _, err := d.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%v\nin %s", err, query)
	}
}

// read scans the single row of a query into dest.
func (d *database) read(t *testing.T, query string, dest ...any) {
	t.Helper()
	if err := d.QueryRowContext(t.Context(), query).Scan(dest...); err != nil {
		t.Fatalf("%v\nin %s", err, query)
	}
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

// onServer runs one statement on a connection of its own, also while the test ends and its context is over.
func onServer(t *testing.T, server, statement string) {
	t.Helper()
	db, err := sql.Open("postgres", server)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		t.Errorf("%s: %v", statement, err)
	}
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
