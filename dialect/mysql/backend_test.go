package mysql

import (
	"strings"
	"sync"
	"testing"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// backend is a database of a real server; its relays log in with no more rights than roles.sql gives them.
type backend struct {
	testDatabase
	relaytest.SQLOperations
	t       testing.TB
	options dialect.Options // of its relays
}

func (b backend) Store(name string) relay.Database { return b.store(name) }

func (b backend) StoreOf(name, instance string) relay.Database { return b.storeOf(name, instance) }

func (b backend) store(name string) *Store { return b.storeOf(name, "") }

func (b backend) storeOf(name, instance string) *Store {
	b.t.Helper()
	o := b.options
	o.Name = name
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

// Insert reads the ids that the database made by their seq: MySQL tells no default back.
func (b backend) Insert(seeds ...relaytest.Seed) []string {
	b.t.Helper()
	tx, err := b.db.Beginx()
	if err != nil {
		b.t.Fatal(err)
	}
	ids := make([]string, len(seeds))
	for i, s := range seeds {
		columns, values, arguments := seedColumns(s)
		result, err := tx.Exec("INSERT INTO outbox ("+strings.Join(columns, ", ")+") VALUES ("+strings.Join(values, ", ")+")", arguments...)
		if err != nil {
			b.t.Fatalf("insert: %v", err)
		}
		if ids[i] = s.ID; s.ID == "" {
			seq, _ := result.LastInsertId()
			if err := tx.Get(&ids[i], "SELECT id FROM outbox WHERE seq = ?", seq); err != nil {
				b.t.Fatalf("insert: %v", err)
			}
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
			columns, values, arguments = append(columns, column), append(values, value), append(arguments, argument)
		}
	}
	add(true, "type", "?", s.Type)
	add(s.ID != "", "id", "?", s.ID)
	add(s.AggregateType != nil, "aggregatetype", "?", s.AggregateType)
	add(s.AggregateID != nil, "aggregateid", "?", s.AggregateID)
	add(s.Payload != nil, "payload", "?", s.Payload)
	add(s.ContentType != "", "content_type", "?", s.ContentType)
	add(s.SchemaVersion != 0, "schema_version", "?", s.SchemaVersion)
	add(s.Headers != "", "headers", "?", s.Headers)
	add(s.Traceparent != "", "traceparent", "?", s.Traceparent)
	add(s.Delay != 0, "due_at", "UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND", s.Delay.Microseconds())
	add(s.Expires != 0, "expires_at", "UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND", s.Expires.Microseconds())
	add(s.Age != 0, "created_at", "UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND", s.Age.Microseconds())
	add(s.UnknownFor != 0, "unknown_since", "UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND", s.UnknownFor.Microseconds())
	add(true, "attempts", "?", s.Attempts)
	add(true, "lapses", "?", s.Lapses)
	add(s.SendID != "", "send_id", "?", s.SendID)
	return columns, values, arguments
}

func (b backend) Lock(id string) (unlock func()) {
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
	if _, err := tx.Exec("SELECT id FROM outbox WHERE id = ? FOR UPDATE", id); err != nil {
		b.t.Fatalf("lock: %v", err)
	}
	return unlock
}

func (b backend) DropLease(lease relay.LeaseID) {
	b.t.Helper()
	b.exec(b.t, "DELETE FROM outbox_lease WHERE lease_id = ?", int64(lease))
}

// Row reads the times that stand for none as such.
func (b backend) Row(id string) relaytest.Row {
	b.t.Helper()
	var rows []relaytest.Row
	const none = "TIMESTAMP'0001-01-01 00:00:00'"
	b.read(&rows, `SELECT UTC_TIMESTAMP(6) AS now, id, seq, routing_key AS routingkey, state, lease_id AS leaseid, attempts, lapses,
		replays, COALESCE(send_id, '') AS sendid, created_at AS createdat,
		IF(due_at < TIMESTAMP'9999-12-31 00:00:00', due_at, `+none+`) AS dueat, COALESCE(expires_at, `+none+`) AS expiresat,
		IF(unknown_since > TIMESTAMP'1000-01-01 00:00:00', unknown_since, `+none+`) AS unknownsince,
		IF(done_at > TIMESTAMP'1000-01-01 00:00:00', done_at, `+none+`) AS doneat,
		IF(failed_at > TIMESTAMP'1000-01-01 00:00:00', failed_at, `+none+`) AS failedat,
		IF(resolved_at > TIMESTAMP'1000-01-01 00:00:00', resolved_at, `+none+`) AS resolvedat,
		COALESCE(reason, '') AS reason, COALESCE(error_class, '') AS errorclass, COALESCE(last_error, '') AS lasterror,
		RTRIM(result) AS result
		FROM outbox WHERE id = ?`, id)
	if len(rows) == 0 {
		return relaytest.Row{}
	}
	return rows[0]
}

func (b backend) Attempts(id string) []relaytest.Attempt {
	b.t.Helper()
	var attempts []relaytest.Attempt
	b.read(&attempts, `SELECT life, attempt, relay, started_at AS startedat, duration * 1000 AS duration, outcome, COALESCE(status, 0) AS status,
		COALESCE(error_class, '') AS errorclass, COALESCE(error, '') AS error, COALESCE(answer, '') AS answer
		FROM outbox_attempt WHERE message_id = ? ORDER BY attempt_id`, id)
	return attempts
}

func (b backend) Leases() []relaytest.LeaseRow {
	b.t.Helper()
	var leases []relaytest.LeaseRow
	b.read(&leases, `SELECT lease_id AS id, relay, claimed_at AS claimedat, renewed_at AS renewedat, length * 1000 AS length
		FROM outbox_lease ORDER BY lease_id`)
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
	if err := b.db.Select(to, query, arguments...); err != nil {
		b.t.Fatalf("%v, in: %.200s", err, query)
	}
}
