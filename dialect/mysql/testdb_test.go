package mysql

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// testServer is one of the two products.
type testServer struct{ name, url string }

// onBoth runs a test on MySQL and on MariaDB, beside each other.
func onBoth(t *testing.T, f func(*testing.T, testServer)) {
	t.Helper()
	for name, variable := range map[string]string{"MySQL": "OUTBOXD_TEST_MYSQL_URL", "MariaDB": "OUTBOXD_TEST_MARIADB_URL"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := os.Getenv(variable)
			if server == "" {
				if os.Getenv("CI") == "true" {
					t.Fatal(variable + " is not set")
				}
				t.Skip(variable + " is not set: no " + name + " to test against")
			}
			f(t, testServer{name, server})
		})
	}
}

// testDatabase is a database of its own on a test server, which goes at the end of the test.
type testDatabase struct {
	server testServer
	url    string   // as the server's root
	schema string   // lower-case letters and digits
	db     *sqlx.DB // takes several statements at once, so that SQL runs as it stands in the files
}

// newDatabase makes a database with all tables of outboxd.
func (s testServer) newDatabase(t testing.TB) testDatabase {
	t.Helper()
	d := s.newSchema(t)
	text, err := Script("001_outbox.sql", "")
	if err != nil {
		t.Fatal(err)
	}
	d.exec(t, text)
	return d
}

// newSchema makes an empty database.
func (s testServer) newSchema(t testing.TB) testDatabase {
	t.Helper()
	d := testDatabase{server: s, url: s.url, schema: "t" + strings.ToLower(rand.Text()[:16])}
	root := d.open(t)
	if _, err := root.Exec("CREATE DATABASE " + d.schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := root.Exec("DROP DATABASE " + d.schema); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatalf("the URL of %s is none", s.name)
	}
	u.Path = "/" + d.schema
	d.url = u.String()
	d.db = d.open(t)
	return d
}

// open connects to the test's database with settings of the session, "name=value" each, and closes at the end of the test.
func (d testDatabase) open(t testing.TB, settings ...string) *sqlx.DB {
	t.Helper()
	config, err := parseURL(d.url, false)
	if err != nil {
		t.Fatal(err)
	}
	config.MultiStatements, config.Params = true, map[string]string{}
	for _, s := range append([]string{"time_zone='+00:00'"}, settings...) {
		name, value, _ := strings.Cut(s, "=")
		config.Params[name] = value
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sqlx.NewDb(sql.OpenDB(connector), "mysql")
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the test's connections: %v", err)
		}
	})
	return db
}

// connect opens the database as outboxd does, in place of URL and Schema.
func (d testDatabase) connect(t testing.TB, o dialect.Options) *DB {
	t.Helper()
	o.URL, o.Schema = d.url, d.schema
	db, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

func (d testDatabase) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	if query == "" {
		return
	}
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
