package dialect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/outboxd/outboxd/relay"
)

// Batch is what one statement settles, in the order in which all relays lock rows, so that two of them never wait in a
// ring; each message once.
type Batch []Settling

// Settling is a settlement beside its row.
type Settling struct {
	relay.Row
	Settlement relay.Settlement
}

// NewBatch sorts settlements by what the engine locks rows by: the id, or seq.
func NewBatch[K cmp.Ordered](settlements []relay.Settlement, key func(relay.Row) K) (Batch, error) {
	b := make(Batch, len(settlements))
	for i, s := range settlements {
		b[i] = Settling{s.Row(), s}
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
func Column[T any](b Batch, value func(relay.Row) T) []T {
	values := make([]T, len(b))
	for i := range b {
		values[i] = value(b[i].Row)
	}
	return values
}

// TookMicros is how long a send took, in microseconds; -1 where nothing went out.
func TookMicros(r relay.Row) int64 {
	if !r.Went {
		return -1
	}
	return max(0, r.Took.Microseconds())
}
