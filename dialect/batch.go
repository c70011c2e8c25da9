package dialect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// Batch is what one statement settles, in the order in which all relays lock rows, so that two of them never wait in a
// ring; each message once.
type Batch []Settling

// Settling is a settlement beside its row.
type Settling struct {
	relay.Row
	Settlement relay.Settlement

	called time.Time // the moment at which Since holds
}

// NewBatch sorts settlements by what the engine locks rows by: the id, or seq.
func NewBatch[K cmp.Ordered](settlements []relay.Settlement, key func(relay.Row) K) (Batch, error) {
	b, now := make(Batch, len(settlements)), time.Now()
	for i, s := range settlements {
		b[i] = Settling{s.Row(), s, now}
	}
	slices.SortFunc(b, func(x, y Settling) int { return cmp.Compare(key(x.Row), key(y.Row)) })
	for i := 1; i < len(b); i++ {
		if key(b[i].Row) == key(b[i-1].Row) {
			return nil, fmt.Errorf("settle: message %s occurs twice", b[i].ID)
		}
	}
	return b, nil
}

// Split takes apart what a short statement can write, done with a short answer; what the application is told of; and the
// rest.
func (b Batch) Split() (done, told, rest Batch) {
	for _, r := range b {
		switch {
		case r.Emit.Type != "":
			told = append(told, r)
		case r.State == relay.Finished && !r.Recorded():
			done = append(done, r)
		default:
			rest = append(rest, r)
		}
	}
	return done, told, rest
}

// Plain replaces in all texts what some encoding of a database cannot hold.
func (b Batch) Plain() Batch {
	p := slices.Clone(b)
	for i := range p {
		r := &p[i].Row
		r.ErrorClass, r.LastError, r.Result, r.Answer = ascii(r.ErrorClass), ascii(r.LastError), ascii(r.Result), ascii(r.Answer)
	}
	return p
}

func ascii(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}

// Column gives one value of each row as an argument.
func Column[T any](b Batch, value func(Settling) T) []T {
	values := make([]T, len(b))
	for i := range b {
		values[i] = value(b[i])
	}
	return values
}

// SinceMicros is how long ago the send began, in microseconds. It grows while the batch waits for locks, or for another part
// of it: ask for it just before the statement that takes it off the database's now.
func (s Settling) SinceMicros() int64 { return (s.Since + time.Since(s.called)).Microseconds() }
