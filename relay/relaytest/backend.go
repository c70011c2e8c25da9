package relaytest

import (
	"time"

	"github.com/outboxd/outboxd/relay"
)

// Backend is one fresh, empty outbox as TestStore needs it. A Backend keeps the *testing.T that it was opened for, fails
// it where something goes wrong, and takes away what it made when that test ends. It is called from the goroutine of the
// test only; the Stores that it opens are used from several.
type Backend interface {
	Preparer
	Looker
}

// Preparer makes the state that a case starts from, as applications, operators and other sessions would.
type Preparer interface {
	// Store opens a relay of that name, of no instance, on the table. Each call gives one of its own, with its own
	// connections.
	Store(relay string) relay.Database
	// StoreOf opens one that is of an instance.
	StoreOf(relay, instance string) relay.Database
	// SetInstance makes the outbox belong to an instance, as a person would.
	SetInstance(name string)
	// Insert commits pending messages and returns their ids, in the order given, which is also the order of seq.
	Insert(seeds ...Seed) (ids []string)
	// Lock holds the row lock of a message in a session of its own until unlock is called.
	Lock(id string) (unlock func())
	// LockRelay holds the row of a relay in outbox_relay, LockBreakers those of its breakers in outbox_control, as Lock does.
	LockRelay(relay string) (unlock func())
	LockBreakers(relay string) (unlock func())
	// DropLease deletes the row of a lease, whoever holds it, and leaves its messages as they are.
	DropLease(lease relay.LeaseID)
	// Order inserts an operation, as an operator would, and returns its id.
	Order(o Ordered) (id string)
	// Correct inserts a row of outbox_correction, with the payload that it was made from, or without: nil.
	Correct(operation, message string, payload, old []byte)
}

// Looker reads what is in the tables, beside the Store.
type Looker interface {
	// Row reads a message; a Row without ID says that there is none.
	Row(id string) Row
	// Attempts reads the rows of outbox_attempt of a message, in the order in which they were written.
	Attempts(id string) []Attempt
	// Leases reads outbox_lease, by ascending lease id.
	Leases() []LeaseRow
	// Relays reads the names in outbox_relay, sorted.
	Relays() []string
	// Breakers reads the states of a relay's breakers in outbox_control, by their names.
	Breakers(relay string) map[string]string
	// Operation reads a row of outbox_operation; one without Op says that there is none.
	Operation(id string) OperationRow
	// Payload reads the body of a message, OldPayload the one that a correction replaced; nil: NULL,
	// or no such row.
	Payload(message string) []byte
	OldPayload(operation, message string) []byte
}

// Seed is a message to insert. Where a zero value is said to be the default, the column is left out of the INSERT.
type Seed struct {
	ID            string  // "": the default
	AggregateType *string // nil: NULL
	AggregateID   *string // nil: NULL
	Type          string
	Payload       []byte // nil: both payload columns are NULL; what text cannot hold goes to payload_bytes
	ContentType   string // "": the default
	SchemaVersion int    // 0: the default
	Headers       string // "": the default
	Traceparent   string // "": NULL

	// Delay makes due_at now and this. Below 0 the message is due since then, as if it had waited: only before the first
	// claim of its routing key, since a Store need not look again where it took all that was due.
	Delay      time.Duration
	Expires    time.Duration // expires_at is now and this; 0: NULL; below 0 it is past
	Age        time.Duration // created_at is now less this
	Attempts   int           // the column, as are Lapses and SendID: a life that already began
	Lapses     int
	UnknownFor time.Duration // unknown_since is now less this; 0: NULL
	SendID     string        // "": NULL
}

// Row is a message with all columns that the relay and the database write. Texts that are NULL are "", times that are
// NULL are zero.
type Row struct {
	Now          time.Time // the database's clock when the row was read, which all times here are compared with
	ID           string
	Seq          int64
	RoutingKey   string
	State        relay.State
	LeaseID      relay.LeaseID
	Attempts     int
	Lapses       int
	Replays      int
	SendID       string
	CreatedAt    time.Time
	DueAt        time.Time
	ExpiresAt    time.Time
	UnknownSince time.Time
	DoneAt       time.Time
	FailedAt     time.Time
	ResolvedAt   time.Time
	Reason       relay.Reason
	ErrorClass   string
	LastError    string
	Result       string
}

// Attempt is a row of outbox_attempt. Texts that are NULL are "".
type Attempt struct {
	Life       int // replays of the message at that time
	Attempt    int // attempts of the message after it
	Relay      string
	StartedAt  time.Time
	Duration   time.Duration
	Outcome    relay.What
	Status     int // 0 where NULL
	ErrorClass string
	Error      string
	Answer     string
}

// LeaseRow is a row of outbox_lease.
type LeaseRow struct {
	ID        relay.LeaseID
	Relay     string
	ClaimedAt time.Time
	RenewedAt time.Time
	Length    time.Duration
}

// Ordered is an operation to insert.
type Ordered struct {
	ID     string // "": one is made
	Op     relay.Op
	Filter string // the column: a JSON object
	Note   string // "": NULL
	DryRun bool

	Progress string // what somebody wrote there by hand; "": NULL
}

// OperationRow is a row of outbox_operation. Texts that are NULL are "".
type OperationRow struct {
	Op       relay.Op
	Filter   string
	Applied  bool
	Affected int // 0 where NULL
	Detail   relay.Detail
	Progress string
	Applier  string
}
