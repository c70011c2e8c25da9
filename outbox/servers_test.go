package outbox_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/outboxd/outboxd/outbox"
)

// engine is a kind of database to test with, and what the tests have to say in its own SQL.
type engine struct {
	name    string
	dialect outbox.Dialect
	driver  string
	open    func(*testing.T, engine) server

	now       string // a time column's value now
	never     string // and of a due_at that is over
	micros    string // of a time column %, since 1970
	bytes     string // the payload
	duplicate func(error) bool
	sessions  []string // settings of a session, as the driver's URL has them, that must not change anything
}

var engines = []engine{
	{
		name: "postgres", dialect: outbox.Postgres, driver: "postgres", open: openPostgres,
		now: "clock_timestamp()", never: "NULL",
		micros: "(extract(epoch FROM %) * 1000000)::bigint", bytes: "coalesce(payload_bytes, convert_to(payload, 'UTF8'))",
		duplicate: func(err error) bool {
			var fault *pq.Error
			return errors.As(err, &fault) && fault.Code == "23505"
		},
		sessions: []string{"", "timezone=Asia/Kolkata", "bytea_output=escape&standard_conforming_strings=off"},
	},
	mysqlEngine("mysql"),
	mysqlEngine("mariadb"),
	{
		name: "sqlite", dialect: outbox.SQLite, driver: "sqlite", open: openSQLite,
		now: "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000", never: "NULL",
		micros: "%", bytes: "payload",
		duplicate: func(err error) bool { return strings.Contains(err.Error(), "UNIQUE constraint failed: outbox.id") },
		sessions:  []string{""},
	},
}

func mysqlEngine(name string) engine {
	e := engine{
		name: name, dialect: outbox.MySQL, driver: "mysql", open: openMySQL,
		now: "UTC_TIMESTAMP(6)", never: "'9999-12-31'",
		micros: "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', %)", bytes: "payload",
		duplicate: func(err error) bool {
			var fault *mysql.MySQLError
			return errors.As(err, &fault) && fault.Number == 1062
		},
	}
	for _, session := range []string{
		"", "time_zone='%2B02:00'", "parseTime=true&loc=Asia%2FKolkata&time_zone='-03:00'", "sql_mode=''",
		"sql_mode='NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT'", "charset=latin1", "charset=latin1&sql_mode=''",
		"charset=utf8&sql_mode=''", "charset=ascii", "charset=cp1251", "charset=gbk", "charset=binary", "collation=utf8mb4_unicode_ci",
	} {
		e.sessions = append(e.sessions, session+"&interpolateParams=false", session+"&interpolateParams=true")
	}
	return e
}

// everywhere runs a test on each engine, in a place of its own.
func everywhere(t *testing.T, test func(*testing.T, server)) {
	t.Parallel()
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			test(t, e.open(t, e))
		})
	}
}

// server is a schema, database or file of the test's own: as its owner sees it, and as an application does.
type server struct {
	engine
	table      outbox.Table
	owner, app *sql.DB
	schema     string
	url        func(settings string) string // of another session of the application
}

// serverURL is the value of the engine's variable. Without one the test is skipped, or fails where CI=true.
func (e engine) serverURL(t *testing.T) *url.URL {
	t.Helper()
	variable := "OUTBOXD_TEST_" + strings.ToUpper(e.name) + "_URL"
	value := os.Getenv(variable)
	switch {
	case value == "" && os.Getenv("CI") == "true":
		t.Fatalf("%s is not set, and CI=true wants every server", variable)
	case value == "":
		t.Skipf("%s is not set: no %s to test with", variable, e.name)
	}
	u, err := url.Parse(value)
	if err != nil {
		t.Fatalf("%s is no URL", variable)
	}
	return u
}

func openPostgres(t *testing.T, e engine) server {
	t.Helper()
	base := e.serverURL(t)
	s := server{engine: e, table: outbox.Table{Dialect: e.dialect}, schema: "outbox_" + strings.ToLower(rand.Text()[:20])}
	address := func(settings string) string {
		u := *base
		u.RawQuery += "&search_path=" + s.schema + "&" + settings
		return u.String()
	}
	s.url = func(settings string) string { return address("role=outbox_application&" + settings) }
	s.owner = connect(t, e.driver, address(""))
	run(t, s.owner, "CREATE SCHEMA "+s.schema)
	t.Cleanup(func() { run(t, s.owner, "DROP SCHEMA "+s.schema+" CASCADE") })
	runFiles(t, s.owner, "postgres/001_outbox.sql", "postgres/roles.sql")
	s.app = connect(t, e.driver, s.url(""))
	return s
}

func openMySQL(t *testing.T, e engine) server {
	t.Helper()
	base := e.serverURL(t)
	s := server{engine: e, table: outbox.Table{Dialect: e.dialect}, schema: "outbox_" + strings.ToLower(rand.Text()[:20])}
	address := func(database, settings string) string {
		return base.User.String() + "@tcp(" + base.Host + ")/" + database + "?" + settings
	}
	s.url = func(settings string) string { return address(s.schema, settings) }
	server := connect(t, e.driver, address("", ""))
	run(t, server, "CREATE DATABASE "+s.schema)
	t.Cleanup(func() { run(t, server, "DROP DATABASE "+s.schema) })
	runFiles(t, connect(t, e.driver, s.url("multiStatements=true")), "mysql/001_outbox.sql")
	s.owner = connect(t, e.driver, s.url(""))
	s.url = func(settings string) string { return s.schema + "@tcp(" + base.Host + ")/" + s.schema + "?" + settings }
	run(t, server, "CREATE USER "+s.schema)
	t.Cleanup(func() { run(t, server, "DROP USER "+s.schema) })
	for _, grant := range applicationGrants(t) {
		run(t, s.owner, grant+" TO "+s.schema)
	}
	s.app = connect(t, e.driver, s.url(""))
	return s
}

// applicationGrants are those of the shipped role, without the role: it would go on to hold rights on all tables of tests.
func applicationGrants(t *testing.T) (grants []string) {
	t.Helper()
	script, err := os.ReadFile("../sql/mysql/roles.sql")
	if err != nil {
		t.Fatal(err)
	}
	for statement := range strings.SplitSeq(string(script), ";\n") {
		if grant, ours := strings.CutSuffix(strings.TrimSpace(statement), " TO outbox_application"); ours && strings.HasPrefix(grant, "GRANT ") {
			grants = append(grants, grant)
		}
	}
	if len(grants) == 0 {
		t.Fatal("roles.sql grants nothing to outbox_application")
	}
	return grants
}

func openSQLite(t *testing.T, e engine) server {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.db")
	s := server{engine: e, table: outbox.Table{Dialect: e.dialect}, schema: "main"}
	s.url = func(string) string { return "file:" + path + "?_pragma=busy_timeout(30000)&_txlock=immediate" }
	s.owner = connect(t, e.driver, s.url(""))
	runFiles(t, s.owner, "sqlite/001_outbox.sql")
	s.app = connect(t, e.driver, s.url(""))
	return s
}

func connect(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func runFiles(t *testing.T, db *sql.DB, names ...string) {
	t.Helper()
	for _, name := range names {
		script, err := os.ReadFile(filepath.Join("..", "sql", name))
		if err != nil {
			t.Fatal(err)
		}
		run(t, db, string(script))
	}
}

// run also works while the test ends and its context is over.
func run(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(context.WithoutCancel(t.Context()), query); err != nil {
		t.Fatalf("%v\nin %s", err, query)
	}
}

// write runs Write in a transaction of the application, and commits it.
func (s server) write(t *testing.T, msgs ...outbox.Message) []string {
	t.Helper()
	return s.writeBy(t, s.app, msgs...)
}

func (s server) writeBy(t *testing.T, app *sql.DB, msgs ...outbox.Message) []string {
	t.Helper()
	tx := begin(t, app)
	ids, err := s.table.Write(t.Context(), tx, msgs...)
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback() })
	return tx
}

// texts is the only column of a query by the owner.
func (s server) texts(t *testing.T, query string) []string {
	t.Helper()
	rows, err := s.owner.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%v\nin %s", err, query)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		all = append(all, "")
		if err := rows.Scan(&all[len(all)-1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return slices.Clip(all)
}

// micro is a time column of the query's tables in microseconds since 1970, as SQL.
func (e engine) micro(column string) string { return strings.ReplaceAll(e.micros, "%", column) }
