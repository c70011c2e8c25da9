package sqlite

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// TestStore holds the Store to its contract. Cases of locked rows are left out: SQLite locks none.
func TestStore(t *testing.T) {
	t.Parallel()
	relaytest.TestStore(t, func(t *testing.T) relaytest.Backend { return newBackend(t) })
}

// backend is a database file and the test that works on it.
type backend struct {
	testFile
	relaytest.SQLOperations
	t testing.TB
}

func newBackend(t testing.TB) backend {
	t.Helper()
	f := newFile(t)
	return backend{f, relaytest.SQLOperations{T: t, DB: f.app.DB}, t}
}

func (b backend) Store(name string) relay.Database { return b.store(name) }

func (b backend) StoreOf(name, instance string) relay.Database { return b.storeOf(name, instance) }

func (b backend) store(name string) *Store { return b.storeOf(name, "") }

func (b backend) storeOf(name, instance string) *Store {
	b.t.Helper()
	const lease = time.Hour // of which calls have a third
	store, err := b.open(b.t, dialect.Options{Name: name, Lease: lease}).Store(name, instance, lease)
	if err != nil {
		b.t.Fatal(err)
	}
	return store.(*Store)
}

func (b backend) Insert(seeds ...relaytest.Seed) []string {
	b.t.Helper()
	tx, err := b.app.Beginx()
	if err != nil {
		b.t.Fatal(err)
	}
	ids := make([]string, len(seeds))
	for i, s := range seeds {
		columns, values, arguments := seedColumns(s)
		query := "INSERT INTO outbox (" + strings.Join(columns, ", ") + ") VALUES (" + strings.Join(values, ", ") + ") RETURNING id"
		if err := tx.Get(&ids[i], query, arguments...); err != nil {
			b.t.Fatalf("insert: %v", err)
		}
	}
	if err := tx.Commit(); err != nil {
		b.t.Fatal(err)
	}
	return ids
}

// seedColumns leaves out what is to have its default. Payloads of an even length go in as texts, others as blobs:
// applications write both.
func seedColumns(s relaytest.Seed) (columns, values []string, arguments []any) {
	add := func(given bool, column, value string, argument any) {
		if given {
			columns, values, arguments = append(columns, column), append(values, value), append(arguments, argument)
		}
	}
	text := len(s.Payload)%2 == 0
	add(true, "type", "?", s.Type)
	add(s.ID != "", "id", "?", s.ID)
	add(s.AggregateType != nil, "aggregatetype", "?", s.AggregateType)
	add(s.AggregateID != nil, "aggregateid", "?", s.AggregateID)
	add(s.Payload != nil && text, "payload", "?", string(s.Payload))
	add(s.Payload != nil && !text, "payload", "?", s.Payload)
	add(s.ContentType != "", "content_type", "?", s.ContentType)
	add(s.SchemaVersion != 0, "schema_version", "?", s.SchemaVersion)
	add(s.Headers != "", "headers", "?", s.Headers)
	add(s.Traceparent != "", "traceparent", "?", s.Traceparent)
	add(s.Delay != 0, "due_at", sqlNow+" + ?", s.Delay.Microseconds())
	add(s.Expires != 0, "expires_at", sqlNow+" + ?", s.Expires.Microseconds())
	add(s.Age != 0, "created_at", sqlNow+" - ?", s.Age.Microseconds())
	add(s.UnknownFor != 0, "unknown_since", sqlNow+" - ?", s.UnknownFor.Microseconds())
	add(true, "attempts", "?", s.Attempts)
	add(true, "lapses", "?", s.Lapses)
	add(s.SendID != "", "send_id", "?", s.SendID)
	return columns, values, arguments
}

// Lock leaves the case out: there are no row locks to hold.
func (b backend) Lock(string) (unlock func()) {
	b.t.Helper()
	b.t.Skip("SQLite locks no rows: one process at a time writes to the file")
	return nil
}

func (b backend) LockRelay(relay string) (unlock func()) { return b.Lock(relay) }

func (b backend) LockBreakers(relay string) (unlock func()) { return b.Lock(relay) }

func (b backend) DropLease(lease relay.LeaseID) {
	b.t.Helper()
	b.exec(b.t, "DELETE FROM outbox_lease WHERE lease_id = ?", int64(lease))
}

func (b backend) Row(id string) relaytest.Row {
	b.t.Helper()
	var rows []struct {
		relaytest.Row
		Times string
	}
	b.read(&rows, `SELECT id, seq, routing_key AS routingkey, state, lease_id AS leaseid, attempts, lapses, replays,
		coalesce(send_id, '') AS sendid, coalesce(reason, '') AS reason, coalesce(error_class, '') AS errorclass,
		coalesce(last_error, '') AS lasterror, coalesce(result, '') AS result,
		json_array(`+sqlNow+`, created_at, due_at, expires_at, unknown_since, done_at, failed_at, resolved_at) AS times
		FROM outbox WHERE id = ?`, id)
	if len(rows) == 0 {
		return relaytest.Row{}
	}
	r := rows[0].Row
	readTimes(b.t, rows[0].Times, &r.Now, &r.CreatedAt, &r.DueAt, &r.ExpiresAt, &r.UnknownSince, &r.DoneAt, &r.FailedAt, &r.ResolvedAt)
	return r
}

func (b backend) Attempts(id string) []relaytest.Attempt {
	b.t.Helper()
	var rows []struct {
		relaytest.Attempt
		Times string
	}
	b.read(&rows, `SELECT life, attempt, relay, duration * 1000 AS duration, outcome, coalesce(status, 0) AS status, coalesce(error_class, '') AS errorclass,
		coalesce(error, '') AS error, coalesce(answer, '') AS answer, json_array(started_at) AS times
		FROM outbox_attempt WHERE message_id = ? ORDER BY attempt_id`, id)
	attempts := make([]relaytest.Attempt, len(rows))
	for i, r := range rows {
		attempts[i] = r.Attempt
		readTimes(b.t, r.Times, &attempts[i].StartedAt)
	}
	return attempts
}

func (b backend) Leases() []relaytest.LeaseRow {
	b.t.Helper()
	var rows []struct {
		relaytest.LeaseRow
		Times string
	}
	b.read(&rows, `SELECT lease_id AS id, relay, length * 1000 AS length, json_array(claimed_at, renewed_at) AS times
		FROM outbox_lease ORDER BY lease_id`)
	leases := make([]relaytest.LeaseRow, len(rows))
	for i, r := range rows {
		leases[i] = r.LeaseRow
		readTimes(b.t, r.Times, &leases[i].ClaimedAt, &leases[i].RenewedAt)
	}
	return leases
}

func (b backend) Relays() []string {
	b.t.Helper()
	var names []string
	b.read(&names, "SELECT name FROM outbox_relay ORDER BY name")
	return names
}

func (b backend) read(to any, query string, arguments ...any) {
	b.t.Helper()
	if err := b.app.Select(to, query, arguments...); err != nil {
		b.t.Fatalf("%v, in: %.200s", err, query)
	}
}

// readTimes reads a JSON array of microseconds, of which a null leaves the time zero.
func readTimes(t testing.TB, text string, times ...*time.Time) {
	t.Helper()
	var micros []*int64
	if err := json.Unmarshal([]byte(text), &micros); err != nil {
		t.Fatal(err)
	}
	for i, us := range micros {
		if us != nil {
			*times[i] = time.UnixMicro(*us)
		}
	}
}
