package sqlite

import (
	"database/sql"
	"strings"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/dialecttest"
)

func TestFold(t *testing.T) {
	t.Parallel()
	cases := map[int]dialect.Class{
		sqlite3.SQLITE_BUSY: dialect.Locked, sqlite3.SQLITE_BUSY_RECOVERY: dialect.Locked, sqlite3.SQLITE_BUSY_SNAPSHOT: dialect.Locked,
		sqlite3.SQLITE_BUSY_TIMEOUT: dialect.Locked, sqlite3.SQLITE_LOCKED: dialect.Locked, sqlite3.SQLITE_LOCKED_SHAREDCACHE: dialect.Locked,
		sqlite3.SQLITE_PROTOCOL: dialect.Away, sqlite3.SQLITE_SCHEMA: dialect.Conflict, sqlite3.SQLITE_INTERRUPT: dialect.Cancelled,
		sqlite3.SQLITE_FULL: dialect.Full, sqlite3.SQLITE_NOMEM: dialect.Full, sqlite3.SQLITE_IOERR_NOMEM: dialect.Full,
		sqlite3.SQLITE_READONLY: dialect.ReadOnly, sqlite3.SQLITE_READONLY_DIRECTORY: dialect.ReadOnly, sqlite3.SQLITE_READONLY_DBMOVED: dialect.Away,
		sqlite3.SQLITE_CANTOPEN: dialect.Login, sqlite3.SQLITE_CANTOPEN_ISDIR: dialect.Login, sqlite3.SQLITE_NOTADB: dialect.Login,
		sqlite3.SQLITE_CORRUPT: dialect.Away, sqlite3.SQLITE_CORRUPT_INDEX: dialect.Away, sqlite3.SQLITE_IOERR: dialect.Away,
		sqlite3.SQLITE_IOERR_FSYNC: dialect.Away, sqlite3.SQLITE_PERM: dialect.Rights, sqlite3.SQLITE_AUTH: dialect.Rights,
		sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY: dialect.Duplicate, sqlite3.SQLITE_CONSTRAINT_UNIQUE: dialect.Duplicate,
		sqlite3.SQLITE_CONSTRAINT_ROWID: dialect.Duplicate, sqlite3.SQLITE_CONSTRAINT_CHECK: dialect.Refused,
		sqlite3.SQLITE_CONSTRAINT_NOTNULL: dialect.Refused, sqlite3.SQLITE_CONSTRAINT_TRIGGER: dialect.Refused, sqlite3.SQLITE_TOOBIG: dialect.Refused,
		sqlite3.SQLITE_MISMATCH: dialect.Unreadable, sqlite3.SQLITE_ERROR: dialect.Missing, sqlite3.SQLITE_MISUSE: dialect.Other, 255: dialect.Other,
	}
	for code, want := range cases {
		if got, name, words := fold(code); got != want || name == "" || words == "" {
			t.Errorf("code %d: %s, %q, %q, want %s", code, got, name, words, want)
		}
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	const broken = "claim: the connection to the database file broke off"
	d := newFile(t).open(t, dialect.Options{})
	dialecttest.TestWrap(t, d.wrap, broken, dialecttest.Fault{Err: sql.ErrConnDone, Class: dialect.Away, Says: broken})
}

// What a statement ends in is told by its code, and no value of a row is in the words.
func TestRealFaults(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	f.exec(t, `INSERT INTO outbox (id, type) VALUES ('QzQx', 'order_paid')`)
	f.exec(t, `CREATE TRIGGER no BEFORE DELETE ON outbox BEGIN SELECT raise(ABORT, 'QzQx'); END`)
	d := f.open(t, dialect.Options{})
	for query, want := range map[string]dialect.Class{
		`INSERT INTO outbox (id, type) VALUES ('QzQx', 'order_paid')`:  dialect.Duplicate,
		`INSERT INTO outbox (id, type) VALUES ('Qz.Qx', 'order_paid')`: dialect.Refused,
		`INSERT INTO outbox (id, type) VALUES (NULL, 'QzQx')`:          dialect.Refused,
		`INSERT INTO outbox (seq, type) VALUES ('QzQx', 'order_paid')`: dialect.Unreadable,
		`DELETE FROM outbox`:  dialect.Refused,
		`SELECT * FROM QzQx`:  dialect.Missing,
		`SELECT QzQx('QzQx')`: dialect.Missing,
	} {
		_, err := d.writer.ExecContext(t.Context(), query)
		if err = d.wrap("claim", err); dialect.ClassOf(err) != want || strings.Contains(err.Error(), "QzQx") {
			t.Errorf("%s: %v, class %s, want %s", query, err, dialect.ClassOf(err), want)
		}
	}
}
