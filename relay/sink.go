package relay

import "context"

// Sink is one destination. A Sink classifies its own failures: by code, never by error text.
type Sink interface {
	// Send makes one try with one message and blocks until it knows what it came to. It is called from many goroutines at
	// once and must return soon after ctx ends: what went out without an answer by then is unknown, what did not go out is
	// unsent. It neither changes nor keeps m. The relay catches a panic and calls it unknown.
	Send(ctx context.Context, m *Message) Outcome
	// Close is called once, after the last Send returned or was given up. It must return when ctx ends.
	Close(ctx context.Context) error
}
