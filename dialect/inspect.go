package dialect

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// Inspector answers what people ask about an outbox. Each engine has one, made of its own texts. Placeholders in them are
// question marks; the names of what they select are the column names in this package's types.
type Inspector struct {
	Read   func(context.Context, func(sqlx.ExtContext) error) error // runs what only looks
	Write  func(context.Context, func(sqlx.ExtContext) error) error // runs a short READ COMMITTED transaction
	Render func(text string) (string, error)                        // puts in the schema and the engine's placeholders
	Wrap   func(query string, err error) error
	Moment func(time.Time) any // a time as the engine's columns are compared with it
	// Groups lists the groups of outbox_due in its order, of one routing key or with "" of all, at most GroupBound and one.
	Groups func(ctx context.Context, q sqlx.ExtContext, routingKey string) ([]Group, error)
	Texts  Texts

	Operations OperationTexts
	Figures    FigureTexts
}

// Texts are an engine's queries for people. None of them reads the whole table.
type Texts struct {
	// Walk reads a bounded part of the messages along an index.
	Walk func(f relay.Filter, oldestFirst bool) Walk
	// ErringFailed walks the failed messages, the last one first. ErringOldest, ErringNewest and ErringNext walk the parts of
	// the group with the routing key ? and lapses ?: what is due, the oldest first and the newest first, and what is not due
	// yet, the next one first. They select ErringFields and so on, at most ? rows.
	ErringFailed, ErringOldest, ErringNewest, ErringNext string
	// Passed is type Passed and Sent type Sent, the newest ? of them by their keys, newest first.
	Passed, Sent string
	// Get is a row of outbox as type Message, GetAttempts the rows of outbox_attempt as type Attempt, oldest first, and
	// GetPayload the columns text and bytes, one of which is NULL: each of the message with the id ?.
	Get, GetAttempts, GetPayload string
	// Lease is the database's now, and of the lease with the number ? relay, claimed_at, renewed_at and length, each NULL where
	// there is none.
	Lease string
	// Waiting is type Waits, Failed type FailedCount, of no more than CountBound messages each.
	Waiting, Failed string
	// Relays is type RelayStatus with the destinations as a JSON array in served, Breakers type BreakerStatus with what a
	// relay wrote of it in value.
	Relays, Breakers string
	// Peers is name, seen_at as any text that differs when it does in seen, and the destinations as a JSON array in served.
	Peers string
	// NextGroup finds the group of routing key and lapses behind one in the order of the claim's index: routing_key, lapses,
	// and whether a message of it is pending.
	NextGroup func(routingKey string, lapses int) (query string, args []any)
	// GroupEnds selects of the pending messages of a group the ones due first and last: routing key, lapses and how many,
	// twice. Its columns are ListedFields or some of them, and at.
	GroupEnds string
}

// CountBound is how many messages are counted of each routing key and number of lapses, and of failed ones in all.
const CountBound = 10000

// selectAll runs one query that only looks.
func (i *Inspector) selectAll(ctx context.Context, name string, rows any, query string, args ...any) error {
	return i.Wrap(name, i.Read(ctx, func(q sqlx.ExtContext) error { return i.selectOn(ctx, q, rows, query, args...) }))
}

// selectOn renders and runs a query in a transaction, or wherever else.
func (i *Inspector) selectOn(ctx context.Context, q sqlx.ExtContext, rows any, query string, args ...any) error {
	text, args, err := i.ready(query, args)
	if err != nil {
		return err
	}
	return sqlx.SelectContext(ctx, q, rows, text, args...)
}

func (i *Inspector) execOn(ctx context.Context, q sqlx.ExtContext, statement string, args ...any) error {
	text, args, err := i.ready(statement, args)
	if err != nil {
		return err
	}
	_, err = q.ExecContext(ctx, text, args...)
	return err
}

// ready renders a text, in which a placeholder for a slice becomes one for each of its elements.
func (i *Inspector) ready(text string, args []any) (string, []any, error) {
	text, args, err := sqlx.In(text, args...)
	if err != nil {
		return "", nil, err
	}
	text, err = i.Render(text)
	return text, args, err
}
