package dialect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/lib/pq"
)

// Class folds the error codes of a database into what outboxd does about them.
type Class string

// The classes. An error without a code of the server is Away, unless its context ended.
const (
	Away       Class = "away"       // no answer, a cut connection, a server that starts or stops: try again
	Locked     Class = "locked"     // a lock was not given in time: try again without the locked rows
	Deadlock   Class = "deadlock"   // the same
	Conflict   Class = "conflict"   // a serialization failure: try again
	Cancelled  Class = "cancelled"  // the statement took too long, or its context ended
	Full       Class = "full"       // no connection, disk or memory left on the server
	ReadOnly   Class = "read_only"  // a standby, or a database set read-only
	Login      Class = "login"      // the server refuses the user, the password or the database's name
	Rights     Class = "rights"     // the role may not do this
	Missing    Class = "missing"    // a table, column, function or schema does not exist
	Duplicate  Class = "duplicate"  // a key exists already
	Refused    Class = "refused"    // a CHECK or NOT NULL refuses the row
	Unreadable Class = "unreadable" // a text or number cannot be converted
	Pooler     Class = "pooler"     // a prepared statement or setting that got lost between server sessions
	Other      Class = "other"
)

// fold has the classes of single SQLSTATE codes, foldGroup those of their first two characters.
// PostgreSQL manual, appendix A.
func fold(code string) (Class, string) {
	switch code {
	case "40P01":
		return Deadlock, "two sessions waited for each other"
	case "55P03":
		return Locked, "another session holds a lock"
	case "40001":
		return Conflict, "another transaction came between"
	case "57014":
		return Cancelled, "the statement took too long or was cancelled"
	case "57P01", "57P02", "57P03", "57P05":
		return Away, "the server is starting, stopping or ended the session"
	case "53300":
		return Full, "the server has no connection left: raise max_connections, or use a pooler"
	case "53100":
		return Full, "the server's disk is full"
	case "25006":
		return ReadOnly, "the database is read-only: name the primary server in the URL"
	case "28P01", "28000":
		return Login, "the server refuses this user or password: check the database URL and pg_hba.conf"
	case "3D000":
		return Login, "there is no database of this name: check the database URL"
	case "42704":
		return Login, "the server does not know a setting that the connection asks for: check what stands after ? in the database URL"
	case "42501":
		return Rights, "the role may not do this: grant it what roles.sql gives"
	case "42P01", "42703", "42883", "3F000":
		return Missing, "a table, column, function or schema of outboxd is missing: run outboxd migrate up"
	case "23505":
		return Duplicate, "the key exists already"
	case "08P01": // what a pooler says of session settings that it does not pass on
		return Pooler, "the server does not take the connection's settings: behind a transaction pooler set pooler: transaction"
	case "26000", "42P05":
		return Pooler, "a prepared statement got lost or came twice: behind a transaction pooler set pooler: transaction"
	}
	switch code[:min(2, len(code))] {
	case "08":
		return Away, "the connection broke"
	case "22":
		return Unreadable, "a value cannot be converted"
	case "23":
		return Refused, "a constraint of the table refuses the row"
	case "53":
		return Full, "the server has no memory or room left"
	}
	return Other, "the database refuses the statement"
}

// Error is a database fault in our own words: the text of a driver or a server can hold what a row holds.
type Error struct {
	Query string // name of the statement, such as claim
	Class Class
	Code  string // SQLSTATE; empty where no server answered
	words string
	err   error
}

// Error names the statement, the code and what to do.
func (e *Error) Error() string {
	if e.Code == "" {
		return e.Query + ": " + e.words
	}
	return fmt.Sprintf("%s: %s (SQLSTATE %s)", e.Query, e.words, e.Code)
}

// Unwrap gives the driver's error, for errors.As. Its text is not for people.
func (e *Error) Unwrap() error { return e.err }

// wrap puts a fault of the named statement into our words; nil stays nil, and what is wrapped already stays as it is.
func wrap(query string, err error) error {
	var known *Error
	var ours *refusal
	if err == nil || errors.As(err, &known) || errors.As(err, &ours) {
		return err
	}
	e := &Error{Query: query, err: err}
	var server *pq.Error
	var address *net.OpError
	var host *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &server):
		e.Code = string(server.Code)
		e.Class, e.words = fold(e.Code)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Class, e.words = Cancelled, "no answer in time"
	case errors.Is(err, pq.ErrSSLNotSupported):
		e.Class, e.words = Login, "the server has no TLS: enable it, or say sslmode=disable in the database URL"
	case errors.As(err, &certificate):
		e.Class, e.words = Login, "the server's certificate is not trusted for this host: set sslrootcert in the database URL"
	case errors.As(err, &host):
		e.Class, e.words = Away, "the host of the database URL has no address" // Its name may be the end of a password.
	case errors.As(err, &address) && address.Op == "dial" && address.Addr != nil:
		e.Class, e.words = Away, "the database at "+address.Addr.String()+" does not answer"
	default:
		e.Class, e.words = Away, "the connection to the database broke off, or its server is a standby: check that the URL names a primary that runs"
	}
	return e
}

// ClassOf tells what kind of fault err is; "" where it is none of a database.
func ClassOf(err error) Class {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Class
	case errors.Is(err, ErrRights):
		return Rights
	}
	return ""
}

// Codes that the statements of a Store look for. PostgreSQL manual, appendix A.
const (
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

// What a refusal is about, for errors.Is. Waiting mends none of them but some of ErrSchema, as SchemaStatus tells.
var (
	ErrServer = errors.New("unsuitable database server")
	ErrSchema = errors.New("tables missing, unfinished or too new")
	ErrShape  = errors.New("table of another shape")
	ErrRights = errors.New("missing rights")
)

// refusal is an error of ours, found by looking at the database.
type refusal struct {
	kind error
	text string
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.kind }

func refuse(kind error, format string, args ...any) error {
	return &refusal{kind: kind, text: fmt.Sprintf(format, args...)}
}
