package dialect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/outboxd/outboxd/relay"
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

// Fault is what an engine knows of an error by its code.
type Fault struct {
	Code  string // as people look it up, such as SQLSTATE 55P03; empty where no server answered
	Class Class
	Words string // what it is and what to do, without any value
}

// Error is a database fault in our own words: the text of a driver or a server can hold what a row holds.
type Error struct {
	Query string // name of the statement, such as claim
	Fault
	err error
}

// Error names the statement, the code and what to do.
func (e *Error) Error() string {
	if e.Code == "" {
		return e.Query + ": " + e.Words
	}
	return fmt.Sprintf("%s: %s (%s)", e.Query, e.Words, e.Code)
}

// Unwrap gives the driver's error, for errors.As. Its text is not for people.
func (e *Error) Unwrap() error { return e.err }

// Wrap puts a fault of the named statement into our words; nil stays nil, and what is wrapped already stays as it is. What
// the server or its driver says by code, the engine's fold tells; what it does not know is a matter of the connection.
func Wrap(query string, err error, fold func(error) (Fault, bool)) error {
	var known *Error
	var ours *refusal
	if err == nil || errors.As(err, &known) || errors.As(err, &ours) {
		return err
	}
	if errors.Is(err, relay.ErrForeign) {
		return fmt.Errorf("%s: %w", query, err)
	}
	fault, ok := fold(err)
	if !ok {
		fault = connectionFault(err)
	}
	return &Error{Query: query, Fault: fault, err: err}
}

func connectionFault(err error) Fault {
	var address *net.OpError
	var host *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Fault{Class: Cancelled, Words: "no answer in time"}
	case errors.As(err, &certificate):
		return Fault{Class: Login, Words: "the server's certificate is not trusted for this host: name its CA in the database URL"}
	case errors.As(err, &host):
		return Fault{Class: Away, Words: "the host of the database URL has no address"} // Its name may be the end of a password.
	case errors.As(err, &address) && address.Op == "dial" && address.Addr != nil:
		return Fault{Class: Away, Words: "the database at " + address.Addr.String() + " does not answer"}
	}
	return Fault{Class: Away, Words: "the connection to the database broke off, or its server is a standby: check that the URL names a primary that runs"}
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

// What a refusal is about, for errors.Is. Waiting mends none of them but some of ErrSchema, as SchemaStatus tells.
var (
	ErrServer   = errors.New("unsuitable database server")
	ErrSchema   = errors.New("tables missing, unfinished or too new")
	ErrShape    = errors.New("table of another shape")
	ErrRights   = errors.New("missing rights")
	ErrFilter   = errors.New("wrong filter")
	ErrNotFound = errors.New("no such message")
)

// refusal is an error of ours, found by looking at the database.
type refusal struct {
	kind error
	text string
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.kind }

// Refuse makes an error of that kind whose text is just the one given.
func Refuse(kind error, format string, args ...any) error {
	return &refusal{kind: kind, text: fmt.Sprintf(format, args...)}
}
