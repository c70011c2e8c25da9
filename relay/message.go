package relay

import "time"

// LeaseID names one claim. The relay chooses it at random, above 0, before it asks for the claim, so that a claim whose
// answer was lost can be asked for again. 0 in a row means never claimed, -1 reclaimed.
type LeaseID int64

// Claim is what a claim returns of one message: identity, size and counters, never the payload (a reader that freezes in
// the middle of megabytes of rows would keep all their locks).
type Claim struct {
	ID            string // canonical lower-case UUID on PostgreSQL; at most 36 characters elsewhere
	Seq           int64  // insertion order
	Lease         LeaseID
	RoutingKey    string
	Type          string
	SchemaVersion int
	Attempts      int           // charged sends of this life so far
	Lapses        int           // lapses since the last outcome
	Expires       bool          // expires_at is set
	ExpiresIn     time.Duration // until expires_at, when it was claimed; 0 or less: it is past
	Age           time.Duration // since created_at, when it was claimed
	Unknown       bool          // unknown_since is set
	UnknownFor    time.Duration // since unknown_since, when it was claimed
	Bytes         int           // payload and headers
}

// Message is a claimed message with all that a destination needs.
type Message struct {
	Claim
	WireKey       string  // send_id if set, else id: the idempotency key that is sent
	AggregateType *string // nil: NULL
	AggregateID   *string // nil: NULL, no key and no order; "" is a key
	Payload       []byte  // nil: both payload columns are NULL
	ContentType   string
	Traceparent   string        // "" where NULL
	Trace         *TraceContext // of this send, where a span of the relay stands between; nil: the row's own
	CreatedAt     time.Time
	RawHeaders    string   // the column: a JSON object
	Headers       []Header // RawHeaders parsed and sorted by name; set by the relay before Send

	// Of a message that may have taken effect before: its first byte goes out before this moment, or it is unsent, since its
	// destination may forget the wire key then. Zero: at any time. Set by the relay before Send.
	StartBy time.Time
}

// Header is one entry of the row's headers column.
type Header struct{ Name, Value string }

// Attempt is the number that this send has, 1 for the first of a life.
func (m *Message) Attempt() int { return m.Attempts + 1 }

// State is the state column.
type State string

// The four states, and no other.
const (
	Pending  State = "pending"
	InFlight State = "in_flight"
	Finished State = "done"
	Failed   State = "failed"
)

// Reason says why a message is failed.
type Reason string

// The closed set of the reason column.
const (
	Exhausted  Reason = "exhausted"  // the budget is used up
	Rejected   Reason = "rejected"   // the destination will never take these bytes
	TooLarge   Reason = "too_large"  // larger than the destination takes
	Expired    Reason = "expired"    // past expires_at before it was sent
	Cancelled  Reason = "cancelled"  // by an operator
	LeaseLost  Reason = "lease_lost" // more than three leases in a row ended without an outcome
	Unknowable Reason = "unknown"    // it may have taken effect, and sending it again is not safe
)

func (r Reason) known() bool {
	switch r {
	case Exhausted, Rejected, TooLarge, Expired, Cancelled, LeaseLost, Unknowable:
		return true
	}
	return false
}
