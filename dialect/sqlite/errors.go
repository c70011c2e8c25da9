package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/outboxd/outboxd/dialect"
)

// fold has the classes of result codes: single extended ones first, then groups by the primary code, which is the lowest
// byte. sqlite.org/rescode.html.
func fold(code int) (class dialect.Class, name, words string) {
	switch code {
	case sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return dialect.Duplicate, "SQLITE_CONSTRAINT", "the key exists already"
	case sqlite3.SQLITE_READONLY_DBMOVED:
		return dialect.Away, "SQLITE_READONLY", "the database file was moved or replaced"
	case sqlite3.SQLITE_IOERR_NOMEM:
		return dialect.Full, "SQLITE_IOERR", "this machine has no memory left"
	}
	switch code & 0xff {
	case sqlite3.SQLITE_BUSY:
		return dialect.Locked, "SQLITE_BUSY", "another process writes to the database file and did not end in time: keep its transactions short, and end a process that is stopped"
	case sqlite3.SQLITE_LOCKED:
		return dialect.Locked, "SQLITE_LOCKED", "another connection holds a table of the database file"
	case sqlite3.SQLITE_PROTOCOL:
		return dialect.Away, "SQLITE_PROTOCOL", "too many processes open the database file at once"
	case sqlite3.SQLITE_SCHEMA:
		return dialect.Conflict, "SQLITE_SCHEMA", "the tables were changed meanwhile"
	case sqlite3.SQLITE_INTERRUPT:
		return dialect.Cancelled, "SQLITE_INTERRUPT", "the statement took too long or was cancelled"
	case sqlite3.SQLITE_FULL:
		return dialect.Full, "SQLITE_FULL", "the disk is full, or the database file has reached its max_page_count"
	case sqlite3.SQLITE_NOMEM:
		return dialect.Full, "SQLITE_NOMEM", "this machine has no memory left"
	case sqlite3.SQLITE_READONLY:
		return dialect.ReadOnly, "SQLITE_READONLY", "the database file is read-only: this user needs the right to write to the file and to its directory"
	case sqlite3.SQLITE_CANTOPEN:
		return dialect.Login, "SQLITE_CANTOPEN", "the database file cannot be opened: this user needs the right to read and write the file and its directory"
	case sqlite3.SQLITE_NOTADB:
		return dialect.Login, "SQLITE_NOTADB", "the file of the database URL is no database of SQLite, or it is encrypted"
	case sqlite3.SQLITE_CORRUPT:
		return dialect.Away, "SQLITE_CORRUPT", "the database file is damaged: stop what uses it, and restore it from a backup or by sqlite3 .recover"
	case sqlite3.SQLITE_IOERR:
		return dialect.Away, "SQLITE_IOERR", "the disk does not read or write: look at the system's log"
	case sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return dialect.Rights, "SQLITE_PERM", "this user may not do this: give it the right to read and write the file and its directory"
	case sqlite3.SQLITE_CONSTRAINT:
		return dialect.Refused, "SQLITE_CONSTRAINT", "a constraint or a trigger of the table refuses the row"
	case sqlite3.SQLITE_TOOBIG:
		return dialect.Refused, "SQLITE_TOOBIG", "a value is longer than SQLite takes"
	case sqlite3.SQLITE_MISMATCH:
		return dialect.Unreadable, "SQLITE_MISMATCH", "a value cannot be converted"
	case sqlite3.SQLITE_ERROR: // of statements that are right by themselves
		return dialect.Missing, "SQLITE_ERROR", "a table, column or function is missing: run outboxd migrate up, and let no trigger on outbox call a function of the application's own"
	}
	return dialect.Other, "SQLite", "the database refuses the statement"
}

// resultCode gives the extended result code of a fault; 0 where SQLite gave none.
func resultCode(err error) int {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code()
	}
	return 0
}

// wrap puts a fault of the named statement into our words. Where the file itself is at fault, the next statement opens it
// anew: a connection stays with a damaged file even after another was put into its place.
func (d *DB) wrap(query string, err error) error {
	err = dialect.Wrap(query, err, d.fault)
	if class := dialect.ClassOf(err); class == dialect.Away || class == dialect.Login {
		d.forget()
	}
	return err
}

func (d *DB) fault(err error) (dialect.Fault, bool) {
	code := resultCode(err)
	if errors.Is(err, os.ErrNotExist) {
		return dialect.Fault{Class: dialect.Login, Words: d.whyNotOpen("the database file is gone")}, true
	}
	if code == 0 {
		ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
		return dialect.Fault{Class: dialect.Away, Words: "the connection to the database file broke off"}, !ended
	}
	class, name, words := fold(code)
	if code&0xff == sqlite3.SQLITE_CANTOPEN {
		words = d.whyNotOpen(words)
	}
	return dialect.Fault{Code: name + " " + strconv.Itoa(code), Class: class, Words: words}, true
}

// whyNotOpen tells apart what SQLite has one code for.
func (d *DB) whyNotOpen(otherwise string) string {
	folder := filepath.Dir(d.path)
	if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
		return "there is no folder " + folder + ": make it, or check the database URL"
	}
	switch info, err := os.Stat(d.path); {
	case errors.Is(err, os.ErrNotExist):
		return "there is no file " + d.path + ": check the database URL, or make the file with outboxd migrate up"
	case err == nil && info.IsDir():
		return d.path + " is a directory: name a file in the database URL"
	}
	return otherwise
}
