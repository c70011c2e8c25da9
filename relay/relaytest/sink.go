package relaytest

import (
	"context"
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// Sink is a destination that keeps a log of every send and answers as its AnswerFunc says. Its zero value answers done to
// all. Safe for concurrent use; the funcs are set before the first send.
type Sink struct {
	// AnswerFunc makes the outcome of a send; nil: done, with result 0@0. It may block, panic, or mark the
	// send as applied.
	AnswerFunc func(ctx context.Context, s *Sending) relay.Outcome
	// CloseFunc is what Close does; nil: nothing.
	CloseFunc func(ctx context.Context) error

	mu     sync.Mutex
	log    []Send
	nth    map[string]int // sends of each wire key
	closed bool
}

var _ relay.Sink = (*Sink)(nil)

// Send is one send in a Sink's log.
type Send struct {
	ID      string
	WireKey string
	Key     *string           // aggregateid
	Sum     [sha256.Size]byte // of the payload
	Attempt int               // the number that the destination is told
	Start   time.Time
	End     time.Time     // zero: still under way
	Outcome relay.Outcome // zero after a panic
	Applied bool          // the work was done, whatever was answered
}

// Sending is a send as an AnswerFunc sees it.
type Sending struct {
	*relay.Message
	Nth     int  // of the sends of this wire key, 1 for the first
	Applied bool // set it where the work is done and the answer says otherwise; a done sets it by itself
}

// Send implements relay.Sink.
func (s *Sink) Send(ctx context.Context, m *relay.Message) (outcome relay.Outcome) {
	i, sending := s.begin(m)
	defer func() { s.end(i, outcome, sending.Applied) }() // after a panic, too
	if s.AnswerFunc == nil {
		return relay.Done("0@0")
	}
	return s.AnswerFunc(ctx, sending)
}

// begin opens an entry of the log and gives its place.
func (s *Sink) begin(m *relay.Message) (int, *Sending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nth == nil {
		s.nth = map[string]int{}
	}
	s.nth[m.WireKey]++
	s.log = append(s.log, Send{
		ID: m.ID, WireKey: m.WireKey, Key: m.AggregateID, Sum: sha256.Sum256(m.Payload), Attempt: m.Attempt(), Start: time.Now(),
	})
	return len(s.log) - 1, &Sending{Message: m, Nth: s.nth[m.WireKey]}
}

func (s *Sink) end(i int, outcome relay.Outcome, applied bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.log[i]
	l.End, l.Outcome, l.Applied = time.Now(), outcome, applied || outcome.Kind == relay.KindDone
}

// Close implements relay.Sink.
func (s *Sink) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if s.CloseFunc != nil {
		return s.CloseFunc(ctx)
	}
	return nil
}

// Closed tells whether Close was called.
func (s *Sink) Closed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Log gives all sends so far, in the order in which they began.
func (s *Sink) Log() []Send {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// Effects counts, for each wire key, how often the work was done: what a receiver without memory has seen.
func (s *Sink) Effects() map[string]int {
	effects := map[string]int{}
	for _, l := range s.Log() {
		if l.Applied {
			effects[l.WireKey]++
		}
	}
	return effects
}

// Hang is an AnswerFunc that answers nothing until ctx ends, and then unknown.
func Hang(ctx context.Context, _ *Sending) relay.Outcome {
	<-ctx.Done()
	return relay.Unknown("timeout", "no answer")
}

// Deaf makes an AnswerFunc that does not care for ctx: it answers unknown only when release is closed.
func Deaf(release <-chan struct{}) func(context.Context, *Sending) relay.Outcome {
	return func(context.Context, *Sending) relay.Outcome {
		<-release
		return relay.Unknown("timeout", "no answer")
	}
}

// LoseAnswer is an AnswerFunc that does the work and answers unknown.
func LoseAnswer(_ context.Context, s *Sending) relay.Outcome {
	s.Applied = true
	return relay.Unknown("reset", "connection reset after the work")
}
