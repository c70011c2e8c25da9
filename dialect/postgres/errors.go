package postgres

import (
	"errors"

	"github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
)

// fold has the classes of SQLSTATE codes, single ones and groups by their first two characters.
// PostgreSQL manual, appendix A.
func fold(code string) (dialect.Class, string) {
	switch code {
	case "40P01":
		return dialect.Deadlock, "two sessions waited for each other"
	case "55P03":
		return dialect.Locked, "another session holds a lock"
	case "40001":
		return dialect.Conflict, "another transaction came between"
	case "57014":
		return dialect.Cancelled, "the statement took too long or was cancelled"
	case "57P01", "57P02", "57P03", "57P05":
		return dialect.Away, "the server is starting, stopping or ended the session"
	case "53300":
		return dialect.Full, "the server has no connection left: raise max_connections, or use a pooler"
	case "53100":
		return dialect.Full, "the server's disk is full"
	case "25006":
		return dialect.ReadOnly, "the database is read-only: name the primary server in the URL"
	case "28P01", "28000":
		return dialect.Login, "the server refuses this user or password: check the database URL and pg_hba.conf"
	case "3D000":
		return dialect.Login, "there is no database of this name: check the database URL"
	case "42704":
		return dialect.Login, "the server does not know a setting that the connection asks for: check what stands after ? in the database URL"
	case "42501":
		return dialect.Rights, "the role may not do this: grant it what roles.sql gives"
	case "42P01", "42703", "42883", "3F000":
		return dialect.Missing, "a table, column, function or schema of outboxd is missing: run outboxd migrate up"
	case "23505":
		return dialect.Duplicate, "the key exists already"
	case "08P01": // what a pooler says of session settings that it does not pass on
		return dialect.Pooler, "the server does not take the connection's settings: behind a transaction pooler set pooler: transaction"
	case "26000", "42P05":
		return dialect.Pooler, "a prepared statement got lost or came twice: behind a transaction pooler set pooler: transaction"
	}
	switch code[:min(2, len(code))] {
	case "08":
		return dialect.Away, "the connection broke"
	case "22":
		return dialect.Unreadable, "a value cannot be converted"
	case "23":
		return dialect.Refused, "a constraint of the table refuses the row"
	case "53":
		return dialect.Full, "the server has no memory or room left"
	}
	return dialect.Other, "the database refuses the statement"
}

// wrap puts a fault of the named statement into our words.
func wrap(query string, err error) error { return dialect.Wrap(query, err, fault) }

// errReadOnly is of a server that answers, and takes no writes.
var errReadOnly = errors.New("the server is read-only")

// fault reads what the server or the driver says by code.
func fault(err error) (dialect.Fault, bool) {
	if code := sqlState(err); code != "" {
		class, words := fold(code)
		return dialect.Fault{Code: "SQLSTATE " + code, Class: class, Words: words}, true
	}
	if errors.Is(err, errReadOnly) {
		_, words := fold("25006")
		return dialect.Fault{Class: dialect.ReadOnly, Words: words}, true
	}
	if errors.Is(err, pq.ErrSSLNotSupported) {
		return dialect.Fault{Class: dialect.Login, Words: "the server has no TLS: enable it, or say sslmode=disable in the database URL"}, true
	}
	return dialect.Fault{}, false
}

// Codes that the statements of a Store look for. PostgreSQL manual, appendix A.
const (
	notNullViolation = "23502"
	uniqueViolation  = "23505"
	lockNotAvailable = "55P03"
	deadlockDetected = "40P01"
)

// sqlState gives the server's code of a fault; "" where no server answered.
func sqlState(err error) string {
	if server, ok := errors.AsType[*pq.Error](err); ok {
		return string(server.Code)
	}
	return ""
}
