package dialect

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lib/pq"

	"github.com/outboxd/outboxd/relay"
)

// batch is what one statement settles: ids ascending, each once.
type batch []settling

type settling struct {
	relay.Row
	settlement relay.Settlement
}

// sorted puts the settlements in the order in which all relays lock rows, so that two of them never wait in a ring.
func sorted(settlements []relay.Settlement) (batch, error) {
	b := make(batch, len(settlements))
	for i, s := range settlements {
		b[i] = settling{s.Row(), s}
		if err := checkUUID(b[i].ID); err != nil {
			return nil, fmt.Errorf("settle: %w", err)
		}
	}
	slices.SortFunc(b, func(x, y settling) int { return cmp.Compare(x.ID, y.ID) })
	for i := 1; i < len(b); i++ {
		if b[i].ID == b[i-1].ID {
			return nil, fmt.Errorf("settle: message %s occurs twice", b[i].ID)
		}
	}
	return b, nil
}

// split takes apart what the short statement can write, done with a short answer, and the rest.
func (b batch) split() (done, rest batch) {
	for _, r := range b {
		if r.State == relay.Finished && !r.Recorded() {
			done = append(done, r)
		} else {
			rest = append(rest, r)
		}
	}
	return done, rest
}

// uuid is the one form in which the database gives ids, in which text and database sort alike.
var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func checkUUID(id string) error {
	if !uuid.MatchString(id) {
		return fmt.Errorf("message id %.50q is no UUID in lower-case letters", id)
	}
	return nil
}

// plain replaces in all texts what some encoding of a database cannot hold.
func (b batch) plain() batch {
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

// column gives one value of each row as an argument.
func column[T any](b batch, value func(relay.Row) T) []T {
	values := make([]T, len(b))
	for i := range b {
		values[i] = value(b[i].Row)
	}
	return values
}

func (b batch) texts(value func(relay.Row) string) pq.StringArray { return column(b, value) }

func (b batch) numbers(value func(relay.Row) int64) pq.Int64Array { return column(b, value) }

func (b batch) ids() pq.StringArray { return b.texts(func(r relay.Row) string { return r.ID }) }

func (b batch) leases() pq.Int64Array {
	return b.numbers(func(r relay.Row) int64 { return int64(r.Lease) })
}

// doneArguments are those of postgresSettleDone.
func (b batch) doneArguments() []any {
	return []any{b.ids(), b.leases(), b.texts(func(r relay.Row) string { return r.Result })}
}

// arguments are those of postgresSettle.
func (b batch) arguments(relayName string) []any {
	return []any{
		b.ids(),
		b.leases(),
		relayName,
		b.texts(func(r relay.Row) string { return string(r.What) }),
		b.texts(func(r relay.Row) string { return string(r.State) }),
		b.numbers(func(r relay.Row) int64 { return r.Delay.Microseconds() }),
		b.numbers(func(r relay.Row) int64 { return bit(r.Charge) }),
		b.numbers(func(r relay.Row) int64 { return lapsesNumber(r.Lapses) }),
		b.numbers(func(r relay.Row) int64 { return bit(r.MarkUnknown) }),
		b.texts(func(r relay.Row) string { return string(r.Reason) }),
		b.texts(func(r relay.Row) string { return r.ErrorClass }),
		b.texts(func(r relay.Row) string { return r.LastError }),
		b.texts(func(r relay.Row) string { return r.Result }),
		b.texts(func(r relay.Row) string { return r.Answer }),
		b.numbers(tookMicros),
	}
}

func bit(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

func lapsesNumber(rule relay.LapseRule) int64 {
	switch rule {
	case relay.LapsesKeep:
		return 1
	case relay.LapsesAdd:
		return 2
	case relay.LapsesZero:
	}
	return 0
}

// tookMicros is -1 where nothing went out.
func tookMicros(r relay.Row) int64 {
	if !r.Went {
		return -1
	}
	return max(0, r.Took.Microseconds())
}
