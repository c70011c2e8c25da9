package dialecttest

import (
	"context"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/outbox"
	"github.com/outboxd/outboxd/relay"
)

// Backend is one fresh outbox. It keeps the *testing.T that it was opened for, fails it where something goes wrong, and
// takes away what it made when that test ends.
type Backend interface {
	// Open connects as outboxd does, with all rights. It may be called again.
	Open() DB
	// Reader connects as outboxd does, with the rights of outbox_reader where the engine has roles.
	Reader() DB
	// Counting is Open, and counts what it reads.
	Counting() Counted
	// SQL is an application's connections, which find the tables without a schema before their names.
	SQL() *sqlx.DB
	// Forms are the words of the engine.
	Forms() Forms
	// ReadsAll returns the step in the plan of an audit that reads all of the table outbox; empty: there is none.
	ReadsAll(a dialect.Audit) (step string)
}

// DB is an engine's DB, of which the cases use this.
type DB interface {
	Inspector
	Auditor
	Physician
	Tables
	Write(ctx context.Context, messages ...outbox.Message) (ids []string, err error)
}

// Inspector answers what people ask.
type Inspector interface {
	List(ctx context.Context, f relay.Filter, limit int, cursor string) (dialect.Page, error)
	Get(ctx context.Context, id string) (dialect.Message, []dialect.Attempt, error)
	Payload(ctx context.Context, id string) ([]byte, error)
	Lease(ctx context.Context, id int64) (now dialect.Time, lease *dialect.Lease, err error)
	Status(ctx context.Context) (dialect.Status, error)
	Waiting(ctx context.Context) ([]dialect.Waits, error)
	Errors(ctx context.Context, f relay.Filter) (dialect.Errors, error)
	Flow(ctx context.Context, limit int) (dialect.Flow, error)
	Kinds(ctx context.Context) (dialect.Kinds, error)
	Outcomes(ctx context.Context) (outcomes []dialect.SendOutcome, more bool, err error)
	Corrected(ctx context.Context, message string, operations []string) ([]string, error)
}

// Auditor runs the shipped queries.
type Auditor interface {
	Audits() ([]dialect.Audit, error)
	Audit(ctx context.Context, a dialect.Audit, id string) (dialect.Answer, error)
}

// Tables are made and looked at before there is any work.
type Tables interface {
	Migrate(ctx context.Context) (applied []string, err error)
	CheckSchema(ctx context.Context) (dialect.SchemaStatus, error)
	CheckShape(ctx context.Context) error
}

// Forms are an engine's words for what is not the same in every SQL.
type Forms struct {
	Outbox   string                                     // the table, as an audit names it
	UUIDs    bool                                       // ids are UUIDs; else other texts can be some, too
	Now      string                                     // the time of the statement
	Plus     func(at string, d time.Duration) string    // a time and this
	Never    string                                     // due_at of a message that is not pending
	Duration func(d time.Duration) string               // a value of a column that holds one
	Array    func(json string) string                   // the column destinations of outbox_relay, of a JSON array
	Held     func(ids ...string) string                 // the column ids of outbox_lease
	Many     func(n int, columns, values string) string // the INSERT of n messages
	Analyze  string                                     // lets the planner know the rows of outbox; empty: it needs not to
	Value    func(column string, value any) any         // what an audit answered, with its times and booleans as such
	// OtherIndex puts the claim's index on another column.
	OtherIndex string
	NoWrite    dialect.Class // of the error of an audit that would write
}

// execute runs SQL as an application would.
func execute(t *testing.T, b Backend, query string) {
	t.Helper()
	if query == "" {
		return
	}
	if _, err := b.SQL().ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%v, in: %.200s", err, query)
	}
}

// many inserts so many messages.
func many(t *testing.T, b Backend, n int, columns, values string) {
	t.Helper()
	execute(t, b, b.Forms().Many(n, columns, values))
}
