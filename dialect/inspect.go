package dialect

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// Inspector answers what people ask about an outbox. Each engine has one, made of its own texts. Placeholders in them are
// question marks; the names of what they select are the column names in this package's types.
type Inspector struct {
	Read   func(context.Context, func(sqlx.ExtContext) error) error // runs what only looks
	Render func(text string) (string, error)                        // puts in the schema and the engine's placeholders
	Wrap   func(query string, err error) error
	Moment func(time.Time) any // a time as the engine's columns are compared with it
	Texts  Texts
}

// Texts are an engine's queries for people. None of them reads the whole table.
type Texts struct {
	// Walk reads a bounded part of the messages along an index.
	Walk func(f relay.Filter, oldestFirst bool) Walk
	// Get is a row of outbox as type Message, GetAttempts the rows of outbox_attempt as type Attempt, oldest first, and
	// GetPayload the columns text and bytes, one of which is NULL: each of the message with the id ?.
	Get, GetAttempts, GetPayload string
	// Waiting is type Waits, Failed type FailedCount, of no more than CountBound messages each.
	Waiting, Failed string
	// Relays is type RelayStatus with the destinations as a JSON array in served, Breakers type BreakerStatus with what a
	// relay wrote of it in value.
	Relays, Breakers string
}

// CountBound is how many messages are counted of each routing key and number of lapses, and of failed ones in all.
const CountBound = 10000

// selectAll renders and runs one query that only looks.
func (i *Inspector) selectAll(ctx context.Context, name string, rows any, query string, args ...any) error {
	text, err := i.Render(query)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return i.Wrap(name, i.Read(ctx, func(q sqlx.ExtContext) error { return sqlx.SelectContext(ctx, q, rows, text, args...) }))
}
