package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// testFile is a database file of its own, which an application would have.
type testFile struct {
	path string
	app  *sqlx.DB // as an application opens it
}

// newFile makes a file with all tables of outboxd.
func newFile(t testing.TB) testFile {
	t.Helper()
	f := newEmptyFile(t)
	if _, err := f.open(t, dialect.Options{}).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

// newEmptyFile names a file that does not exist before somebody writes to it.
func newEmptyFile(t testing.TB) testFile {
	t.Helper()
	f := testFile{path: filepath.Join(t.TempDir(), "shop.db")}
	f.app = f.connect(t)
	return f
}

// connect opens the file as an application does.
func (f testFile) connect(t testing.TB) *sqlx.DB {
	t.Helper()
	app, err := sqlx.Open("sqlite", "file:"+f.path+"?_busy_timeout=60000&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := app.Close(); err != nil {
			t.Errorf("close the test's connections: %v", err)
		}
	})
	return app
}

// open opens the file as outboxd does.
func (f testFile) open(t testing.TB, o dialect.Options) *DB {
	t.Helper()
	o.URL = "sqlite:" + f.path
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

func (f testFile) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	if _, err := f.app.Exec(query, args...); err != nil {
		t.Fatalf("%v, in: %.200s", err, query)
	}
}

// lock holds the file's one write lock, as an application with a long transaction does, until unlock is called.
func (f testFile) lock(t testing.TB) (unlock func()) {
	t.Helper()
	tx, err := f.connect(t).Beginx()
	if err != nil {
		t.Fatal(err)
	}
	unlock = func() { _ = tx.Rollback() } // a second call finds the transaction ended
	t.Cleanup(unlock)
	return unlock
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
