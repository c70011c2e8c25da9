package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// State is where a message is in its life.
type State string

// The four states, and no other.
const (
	Pending  State = "pending"   // waits to be sent, for the first time or again
	InFlight State = "in_flight" // a relay has it
	Done     State = "done"      // acknowledged by its destination
	Failed   State = "failed"    // given up, for Reason; an operator can replay it
)

// Final tells that no relay does anything more with the message by itself.
func (s State) Final() bool { return s == Done || s == Failed }

// Result is what became of a message. Times are the database's, in UTC; a zero time is none.
type Result struct {
	State      State
	Reason     string // of a failed one: exhausted, rejected, too_large, expired, cancelled, lease_lost or unknown
	Result     string // of a done one: the destination's reference, as Kafka's partition@offset; at most 255 bytes
	CreatedAt  time.Time
	DoneAt     time.Time
	FailedAt   time.Time
	ResolvedAt time.Time // of a failed one that needs nothing more
}

// ErrNotFound says that the table holds no message of that id: it was never committed, or retention has removed it.
var ErrNotFound = errors.New("no message of this id")

// Queryer reads one row: *sql.DB, *sql.Conn, *sql.Tx and those of sqlx are.
type Queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Result reads what became of the message. It needs SELECT on id, state, reason, result and the times only, which the
// application's role has. An id that the table does not hold is ErrNotFound.
func (t Table) Result(ctx context.Context, db Queryer, id string) (Result, error) {
	f, quoted, err := t.form()
	if err != nil {
		return Result{}, err
	}
	stored, problem := f.id(id)
	if problem != "" {
		return Result{}, fmt.Errorf("outbox: id %q: %s", id, problem)
	}
	var r Result
	var reason, result sql.NullString
	var created, done, failed, resolved sql.NullInt64
	err = db.QueryRowContext(ctx, f.placed("SELECT "+f.selected+" FROM "+quoted+" WHERE id = ?", 0), stored).
		Scan(&r.State, &reason, &result, &created, &done, &failed, &resolved)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Result{}, fmt.Errorf("outbox: %s: %w", id, ErrNotFound)
	case err != nil:
		return Result{}, fmt.Errorf("outbox: read %s: %w", id, err)
	}
	r.Reason, r.Result = reason.String, strings.TrimRight(result.String, " ")
	r.CreatedAt, r.DoneAt, r.FailedAt, r.ResolvedAt = utc(created), utc(done), utc(failed), utc(resolved)
	return r, nil
}

// utc is the time of so many microseconds since 1970.
func utc(micros sql.NullInt64) time.Time {
	if !micros.Valid {
		return time.Time{}
	}
	return time.UnixMicro(micros.Int64).UTC()
}
