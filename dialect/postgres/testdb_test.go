package postgres

import (
	"crypto/rand"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"

	outboxsql "github.com/outboxd/outboxd/sql"
)

// testDatabase is a schema of its own on the test server, which goes at the end of the test.
type testDatabase struct {
	url    string   // of the server, as a superuser
	schema string   // lower-case letters and digits
	db     *sqlx.DB // its search_path is the schema, so that SQL runs as it stands in the files
}

// newDatabase makes a schema with all tables of outboxd.
func newDatabase(t testing.TB) testDatabase {
	t.Helper()
	d := newSchema(t)
	for _, file := range []string{"postgres/001_outbox.sql"} {
		text, err := outboxsql.Files.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d.exec(t, string(text))
	}
	return d
}

// newSchema makes an empty schema.
func newSchema(t testing.TB) testDatabase {
	t.Helper()
	server := os.Getenv("OUTBOXD_TEST_POSTGRES_URL")
	if server == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("OUTBOXD_TEST_POSTGRES_URL is not set")
		}
		t.Skip("OUTBOXD_TEST_POSTGRES_URL is not set: no PostgreSQL to test against")
	}
	d := testDatabase{url: server, schema: "t" + strings.ToLower(rand.Text()[:16])}
	d.db = d.open(t, "search_path="+d.schema)
	d.exec(t, "CREATE SCHEMA "+d.schema)
	t.Cleanup(func() {
		if _, err := d.db.Exec("DROP SCHEMA " + d.schema + " CASCADE"); err != nil {
			t.Errorf("drop the test's schema: %v", err)
		}
	})
	return d
}

// with is the URL with further settings, "name=value" each.
func (d testDatabase) with(t testing.TB, settings ...string) string {
	t.Helper()
	u, err := url.Parse(d.url)
	if err != nil {
		t.Fatal("OUTBOXD_TEST_POSTGRES_URL is no URL")
	}
	q := u.Query()
	if !q.Has("sslmode") {
		q.Set("sslmode", "disable")
	}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// open connects to the test server with further settings, and closes at the end of the test.
func (d testDatabase) open(t testing.TB, settings ...string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("postgres", d.with(t, settings...))
	if err != nil {
		t.Fatal("OUTBOXD_TEST_POSTGRES_URL is not understood")
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the test's connections: %v", err)
		}
	})
	return db
}

func (d testDatabase) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	if _, err := d.db.Exec(query, args...); err != nil {
		t.Fatalf("%v, in: %.200s", err, query)
	}
}

// eventually asks until f is true, and fails the test after a minute.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 6000 {
		if f() {
			return
		}
		<-tick.C
	}
	t.Fatalf("waited a minute for %s", what)
}

// inTransaction commits what f did if it has no error.
func inTransaction(db *sqlx.DB, f func(*sqlx.Tx) error) error {
	tx, err := db.Beginx()
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
