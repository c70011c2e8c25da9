package dialect

import (
	"context"
)

// Message is a row of outbox without its payload. Fields are its columns; times are UTC.
type Message struct {
	ID            string  `json:"id"`
	AggregateType *string `json:"aggregatetype"`
	AggregateID   *string `json:"aggregateid"`
	Type          string  `json:"type"`
	ContentType   string  `json:"content_type"`
	SchemaVersion int     `json:"schema_version"`
	Headers       string  `json:"headers"`
	Traceparent   *string `json:"traceparent"`
	RoutingKey    string  `json:"routing_key"`
	Seq           int64   `json:"seq"`
	State         string  `json:"state"`
	DueAt         *Time   `json:"due_at"`
	ExpiresAt     *Time   `json:"expires_at"`
	LeaseID       int64   `json:"lease_id"`
	Attempts      int     `json:"attempts"`
	Lapses        int     `json:"lapses"`
	Replays       int     `json:"replays"`
	UnknownSince  *Time   `json:"unknown_since"`
	SendID        *string `json:"send_id"`
	CreatedAt     Time    `json:"created_at"`
	DoneAt        *Time   `json:"done_at"`
	FailedAt      *Time   `json:"failed_at"`
	ResolvedAt    *Time   `json:"resolved_at"`
	Reason        *string `json:"reason"`
	ErrorClass    *string `json:"error_class"`
	LastError     *string `json:"last_error"`
	Result        *string `json:"result"`
	Relay         *string `json:"relay"` // who holds its lease, while it is in flight
}

// Attempt is a row of outbox_attempt.
type Attempt struct {
	AttemptID  int64   `json:"attempt_id"`
	MessageID  string  `json:"message_id"`
	Life       int     `json:"life"`
	Attempt    int     `json:"attempt"`
	Relay      string  `json:"relay"`
	StartedAt  Time    `json:"started_at"`
	Duration   Age     `json:"duration"`
	Outcome    string  `json:"outcome"`
	Status     *int    `json:"status"`
	ErrorClass *string `json:"error_class"`
	Error      *string `json:"error"`
	Answer     *string `json:"answer"`
}

// Get returns a message and its attempts, oldest first: all sends that were recorded, of all its lives. errors.Is
// ErrNotFound where there is no message of the id.
func (i *Inspector) Get(ctx context.Context, id string) (Message, []Attempt, error) {
	var found []Message
	if err := i.selectAll(ctx, "get", &found, i.Texts.Get, id); err != nil {
		return Message{}, nil, notUUID(id, err)
	}
	if len(found) == 0 {
		return Message{}, nil, Refuse(ErrNotFound, "no message has the id %s", id)
	}
	var attempts []Attempt
	if err := i.selectAll(ctx, "get attempts", &attempts, i.Texts.GetAttempts, id); err != nil {
		return Message{}, nil, err
	}
	return found[0], attempts, nil
}

// Payload returns the bytes of a message's payload; nil: it is empty. It needs a role that may read payloads.
func (i *Inspector) Payload(ctx context.Context, id string) ([]byte, error) {
	var found []struct{ Text, Bytes []byte }
	if err := i.selectAll(ctx, "get payload", &found, i.Texts.GetPayload, id); err != nil {
		return nil, notUUID(id, err)
	}
	switch {
	case len(found) == 0:
		return nil, Refuse(ErrNotFound, "no message has the id %s", id)
	case found[0].Text != nil:
		return found[0].Text, nil
	}
	return found[0].Bytes, nil
}

// notUUID says in place of a conversion's fault that an id of that form cannot exist.
func notUUID(id string, err error) error {
	if ClassOf(err) == Unreadable {
		return Refuse(ErrNotFound, "no message has the id %.80q: it is not a UUID", id)
	}
	return err
}
