package postgres

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// postgresBackend is a schema of a real database; its relays log in with no more rights than roles.sql gives them.
type postgresBackend struct {
	testDatabase
	relaytest.SQLOperations
	t       testing.TB
	options dialect.Options // of its relays
}

func (b postgresBackend) Store(name string) relay.Database { return b.postgres(name) }

func (b postgresBackend) StoreOf(name, instance string) relay.Database {
	return b.postgresOf(name, instance)
}

func (b postgresBackend) postgres(name string) *Store { return b.postgresOf(name, "") }

func (b postgresBackend) postgresOf(name, instance string) *Store {
	b.t.Helper()
	o := b.options
	o.Name, o.Schema = name, b.schema
	db, err := Open(o)
	if err != nil {
		b.t.Fatal(err)
	}
	store, err := db.store(name, instance, o.Lease)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = store.Close()
		_ = db.Close() // some tests have ended its sessions before
	})
	return store
}

func (b postgresBackend) Insert(seeds ...relaytest.Seed) []string {
	b.t.Helper()
	tx, err := b.db.Beginx()
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

// seedColumns leaves out what is to have its default.
func seedColumns(s relaytest.Seed) (columns, values []string, arguments []any) {
	add := func(given bool, column, value string, argument any) {
		if given {
			arguments = append(arguments, argument)
			columns = append(columns, column)
			values = append(values, strings.ReplaceAll(value, "?", "$"+strconv.Itoa(len(arguments))))
		}
	}
	text := utf8.Valid(s.Payload) && !strings.Contains(string(s.Payload), "\x00")
	add(true, "type", "?", s.Type)
	add(s.ID != "", "id", "?", s.ID)
	add(s.AggregateType != nil, "aggregatetype", "?", s.AggregateType)
	add(s.AggregateID != nil, "aggregateid", "?", s.AggregateID)
	add(s.Payload != nil && text, "payload", "?", string(s.Payload))
	add(s.Payload != nil && !text, "payload_bytes", "?", s.Payload)
	add(s.ContentType != "", "content_type", "?", s.ContentType)
	add(s.SchemaVersion != 0, "schema_version", "?", s.SchemaVersion)
	add(s.Headers != "", "headers", "?", s.Headers)
	add(s.Traceparent != "", "traceparent", "?", s.Traceparent)
	add(s.Delay != 0, "due_at", "clock_timestamp() + ?::bigint * interval '1 microsecond'", s.Delay.Microseconds())
	add(s.Expires != 0, "expires_at", "clock_timestamp() + ?::bigint * interval '1 microsecond'", s.Expires.Microseconds())
	add(s.Age != 0, "created_at", "clock_timestamp() - ?::bigint * interval '1 microsecond'", s.Age.Microseconds())
	add(s.UnknownFor != 0, "unknown_since", "clock_timestamp() - ?::bigint * interval '1 microsecond'", s.UnknownFor.Microseconds())
	add(true, "attempts", "?", s.Attempts)
	add(true, "lapses", "?", s.Lapses)
	add(s.SendID != "", "send_id", "?", s.SendID)
	return columns, values, arguments
}

func (b postgresBackend) Lock(id string) (unlock func()) {
	b.t.Helper()
	tx, err := b.db.Beginx()
	if err != nil {
		b.t.Fatal(err)
	}
	unlock = sync.OnceFunc(func() {
		if err := tx.Rollback(); err != nil {
			b.t.Errorf("unlock: %v", err)
		}
	})
	b.t.Cleanup(unlock)
	if _, err := tx.Exec("SELECT FROM outbox WHERE id = $1 FOR UPDATE", id); err != nil {
		b.t.Fatalf("lock: %v", err)
	}
	return unlock
}

func (b postgresBackend) DropLease(lease relay.LeaseID) {
	b.t.Helper()
	b.exec(b.t, "DELETE FROM outbox_lease WHERE lease_id = $1", int64(lease))
}

func (b postgresBackend) Row(id string) relaytest.Row {
	b.t.Helper()
	var rows []relaytest.Row
	b.read(&rows, `SELECT clock_timestamp() AS now, id, seq, routing_key AS routingkey, state, lease_id AS leaseid, attempts, lapses,
		replays, coalesce(send_id::text, '') AS sendid, created_at AS createdat, coalesce(due_at, z) AS dueat, coalesce(expires_at, z) AS expiresat,
		coalesce(unknown_since, z) AS unknownsince, coalesce(done_at, z) AS doneat, coalesce(failed_at, z) AS failedat,
		coalesce(resolved_at, z) AS resolvedat, coalesce(reason, '') AS reason, coalesce(error_class, '') AS errorclass,
		coalesce(last_error, '') AS lasterror, coalesce(result, '') AS result
		FROM outbox, (VALUES (timestamptz '0001-01-01 00:00:00+00')) AS zero(z) WHERE id = $1`, id)
	if len(rows) == 0 {
		return relaytest.Row{}
	}
	return rows[0]
}

func (b postgresBackend) Attempts(id string) []relaytest.Attempt {
	b.t.Helper()
	var attempts []relaytest.Attempt
	b.read(&attempts, `SELECT life, attempt, relay, started_at AS startedat, (extract(epoch FROM duration) * 1000000000)::bigint AS duration,
		outcome, coalesce(status, 0) AS status, coalesce(error_class, '') AS errorclass, coalesce(error, '') AS error, coalesce(answer, '') AS answer
		FROM outbox_attempt WHERE message_id = $1 ORDER BY attempt_id`, id)
	return attempts
}

func (b postgresBackend) Leases() []relaytest.LeaseRow {
	b.t.Helper()
	var leases []relaytest.LeaseRow
	b.read(&leases, `SELECT lease_id AS id, relay, claimed_at AS claimedat, renewed_at AS renewedat,
		(extract(epoch FROM length) * 1000000000)::bigint AS length FROM outbox_lease ORDER BY lease_id`)
	return leases
}

func (b postgresBackend) Relays() []string {
	b.t.Helper()
	var names []string
	b.read(&names, "SELECT name FROM outbox_relay ORDER BY name")
	return names
}

func (b postgresBackend) read(to any, query string, arguments ...any) {
	b.t.Helper()
	if err := b.db.Select(to, query, arguments...); err != nil {
		b.t.Fatalf("%v, in: %.200s", err, query)
	}
}
