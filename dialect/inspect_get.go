package dialect

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Message is a row of outbox without its payload. Fields are its columns; times are UTC.
type Message struct {
	ID            string     `json:"id"`
	AggregateType *string    `json:"aggregatetype"`
	AggregateID   *string    `json:"aggregateid"`
	Type          string     `json:"type"`
	ContentType   string     `json:"content_type"`
	SchemaVersion int        `json:"schema_version"`
	Headers       string     `json:"headers"`
	Traceparent   *string    `json:"traceparent"`
	RoutingKey    string     `json:"routing_key"`
	Seq           int64      `json:"seq"`
	State         string     `json:"state"`
	DueAt         *time.Time `json:"due_at"`
	ExpiresAt     *time.Time `json:"expires_at"`
	LeaseID       int64      `json:"lease_id"`
	Attempts      int        `json:"attempts"`
	Lapses        int        `json:"lapses"`
	Replays       int        `json:"replays"`
	UnknownSince  *time.Time `json:"unknown_since"`
	SendID        *string    `json:"send_id"`
	CreatedAt     time.Time  `json:"created_at"`
	DoneAt        *time.Time `json:"done_at"`
	FailedAt      *time.Time `json:"failed_at"`
	ResolvedAt    *time.Time `json:"resolved_at"`
	Reason        *string    `json:"reason"`
	ErrorClass    *string    `json:"error_class"`
	LastError     *string    `json:"last_error"`
	Result        *string    `json:"result"`
	Relay         *string    `json:"relay"` // who holds its lease, while it is in flight
}

// Attempt is a row of outbox_attempt.
type Attempt struct {
	AttemptID  int64     `json:"attempt_id"`
	MessageID  string    `json:"message_id"`
	Life       int       `json:"life"`
	Attempt    int       `json:"attempt"`
	Relay      string    `json:"relay"`
	StartedAt  time.Time `json:"started_at"`
	Duration   Age       `json:"duration"`
	Outcome    string    `json:"outcome"`
	ErrorClass *string   `json:"error_class"`
	Error      *string   `json:"error"`
	Answer     *string   `json:"answer"`
}

// ErrNotFound is the kind of error of a message that does not exist, or that retention removed.
var ErrNotFound = errors.New("no such message")

// $1 id.
const getMessage = `
SELECT o.id, aggregatetype, aggregateid, type, content_type, schema_version, headers, traceparent, routing_key, seq, state, due_at,
  expires_at, o.lease_id, attempts, lapses, replays, unknown_since, send_id, created_at, done_at, failed_at, resolved_at, reason,
  error_class, last_error, result, CASE WHEN state = 'in_flight' THEN l.relay END AS relay
FROM /*schema.*/outbox o LEFT JOIN /*schema.*/outbox_lease l USING (lease_id)
WHERE o.id = $1::uuid`

// $1 id.
const getAttempts = `
SELECT attempt_id, message_id, life, attempt, relay, started_at, (extract(epoch FROM duration) * 1000000)::bigint AS duration,
  outcome, error_class, error, answer
FROM /*schema.*/outbox_attempt WHERE message_id = $1::uuid ORDER BY attempt_id`

// Get returns a message and its attempts, oldest first: all sends that were recorded, of all its lives. errors.Is
// ErrNotFound where there is no message of the id.
func (d *DB) Get(ctx context.Context, id string) (Message, []Attempt, error) {
	var found []Message
	if err := d.selectAll(ctx, "get", &found, getMessage, id); err != nil {
		return Message{}, nil, notUUID(id, err)
	}
	if len(found) == 0 {
		return Message{}, nil, refuse(ErrNotFound, "no message has the id %s", id)
	}
	var attempts []Attempt
	if err := d.selectAll(ctx, "get attempts", &attempts, getAttempts, id); err != nil {
		return Message{}, nil, err
	}
	return found[0], attempts, nil
}

// Payload returns the bytes of a message's payload; nil: it is empty. It needs a role that may read payloads.
func (d *DB) Payload(ctx context.Context, id string) ([]byte, error) {
	var found []struct{ Text, Bytes []byte }
	const query = `SELECT payload AS text, payload_bytes AS bytes FROM /*schema.*/outbox WHERE id = $1::uuid`
	if err := d.selectAll(ctx, "get payload", &found, query, id); err != nil {
		return nil, notUUID(id, err)
	}
	switch {
	case len(found) == 0:
		return nil, refuse(ErrNotFound, "no message has the id %s", id)
	case found[0].Text != nil:
		return found[0].Text, nil
	}
	return found[0].Bytes, nil
}

// notUUID says in place of a conversion's fault that an id of that form cannot exist.
func notUUID(id string, err error) error {
	if sqlState(err) == "22P02" {
		return refuse(ErrNotFound, "no message has the id %.80q: it is not a UUID", id)
	}
	return err
}

// Age is a length of time by the database's clock. It is seconds in JSON.
type Age time.Duration

// Scan reads microseconds.
func (a *Age) Scan(value any) error {
	micros, ok := value.(int64)
	if !ok {
		return fmt.Errorf("an age is an integer of microseconds, not %T", value)
	}
	*a = Age(fromMicros(micros))
	return nil
}

// Value is what Scan reads.
func (a Age) Value() (driver.Value, error) { return time.Duration(a).Microseconds(), nil }

// MarshalJSON writes seconds with their fraction.
func (a Age) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(a).Seconds(), 'f', -1, 64), nil
}

// String is for people: whole seconds from one minute on, milliseconds below.
func (a Age) String() string {
	d := time.Duration(a)
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}
