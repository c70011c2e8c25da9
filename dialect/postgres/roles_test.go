package postgres

import (
	"errors"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
)

// withRoles makes all tables and the roles' rights on them.
func withRoles(t *testing.T) testDatabase {
	t.Helper()
	d := newDatabase(t)
	text, err := Script("roles.sql", d.schema)
	if err != nil {
		t.Fatal(err)
	}
	d.exec(t, text)
	return d
}

// as runs a statement as one of the roles.
func (d testDatabase) as(role, query string) error {
	return inTransaction(d.db, func(tx *sqlx.Tx) error {
		if _, err := tx.Exec("SET LOCAL ROLE outbox_" + role); err != nil {
			return err
		}
		_, err := tx.Exec(query)
		return err
	})
}

func TestRoles(t *testing.T) {
	t.Parallel()
	d := withRoles(t)
	const id = "00000000-0000-7000-8000-000000000001"
	const ok, denied = "", "42501"
	cases := []struct{ role, query, code string }{
		{"application", "INSERT INTO outbox (id, type, payload) VALUES ('" + id + "', 'a', 'secret') RETURNING id, state, due_at", ok},
		{"application", "INSERT INTO outbox (id, type) VALUES ('" + id + "', 'a') ON CONFLICT (id) DO NOTHING", ok},
		{"application", "INSERT INTO outbox (id, type) VALUES ('" + id + "', 'a')", uniqueViolation},
		{"application", "INSERT INTO outbox (aggregatetype, aggregateid, type, payload_bytes, content_type, schema_version, headers, traceparent, due_at, expires_at) VALUES ('o', '1', 'a', '', 'text/plain', 2, '{}', '00', clock_timestamp(), clock_timestamp())", ok},
		{"application", "SELECT outbox_write('a', '{}', '7', 'orders')", ok},
		{"application", "SELECT id, state, reason, result, created_at, due_at, expires_at, done_at, failed_at, resolved_at FROM outbox", ok},
		{"application", "SELECT payload FROM outbox", denied},
		{"application", "SELECT payload_bytes FROM outbox", denied},
		{"application", "INSERT INTO outbox (type, payload) VALUES ('a', 'x') RETURNING payload", denied},
		{"application", "INSERT INTO outbox (type, state) VALUES ('a', 'pending')", denied},
		{"application", "INSERT INTO outbox (type, attempts) VALUES ('a', 1)", denied},
		{"application", "INSERT INTO outbox (type, created_at) VALUES ('a', now())", denied},
		{"application", "UPDATE outbox SET state = 'done'", denied},
		{"application", "DELETE FROM outbox", denied},
		{"application", "SELECT * FROM outbox_attempt", denied},

		{"reader", "SELECT id, headers, last_error, routing_key FROM outbox", ok},
		{"reader", "SELECT * FROM outbox_lease", ok},
		{"reader", "SELECT * FROM outbox_operation", ok},
		{"reader", "SELECT operation_id, id FROM outbox_correction", ok},
		{"reader", "SELECT payload FROM outbox", denied},
		{"reader", "SELECT old_payload FROM outbox_correction", denied},
		{"reader", "INSERT INTO outbox_operation (op, filter) VALUES ('cancel', '{}')", denied},

		{"operator", "INSERT INTO outbox_operation (id, op, filter, note, dry_run) VALUES (gen_random_uuid(), 'cancel', '{}', 'n', true)", ok},
		{"operator", "INSERT INTO outbox_operation (op, filter, applied_at) VALUES ('cancel', '{}', now())", denied},
		{"operator", "SELECT id FROM outbox", ok},
		{"operator", "SELECT payload FROM outbox", denied},
		{"operator", "UPDATE outbox_operation SET applied_at = now()", denied},
		{"operator", "INSERT INTO outbox_correction (operation_id, id) VALUES (gen_random_uuid(), gen_random_uuid())", denied},

		{"corrector", "SELECT payload, payload_bytes, state FROM outbox", ok},
		{"corrector", "INSERT INTO outbox_correction (operation_id, id, payload) VALUES (gen_random_uuid(), gen_random_uuid(), 'p')", ok},
		{"corrector", "INSERT INTO outbox_correction (operation_id, id, payload, old_payload, old_payload_bytes) SELECT gen_random_uuid(), id, 'p', payload, payload_bytes FROM outbox", ok},
		{"corrector", "INSERT INTO outbox_operation (op, filter) VALUES ('correct', '{}')", ok},
		{"corrector", "UPDATE outbox SET payload = 'x'", denied},

		{"relay", "UPDATE outbox SET due_at = now(), lease_id = 1", ok},
		{"relay", "UPDATE outbox SET id = gen_random_uuid()", denied},
		{"relay", "UPDATE outbox SET headers = '{}'", denied},
		{"relay", "INSERT INTO outbox (aggregatetype, aggregateid, type, payload, traceparent) VALUES ('o', '1', 'a', 'p', '00')", ok},
		{"relay", "INSERT INTO outbox (type, id) VALUES ('a', gen_random_uuid())", denied},
		{"relay", "INSERT INTO outbox (type, state) VALUES ('a', 'pending')", denied},
		{"relay", "INSERT INTO outbox (type, due_at) VALUES ('a', now())", denied},
		{"relay", "INSERT INTO outbox (type, headers) VALUES ('a', '{}')", denied},
		{"relay", "INSERT INTO outbox (type, payload_bytes) VALUES ('a', '')", denied},
		{"relay", "SELECT * FROM outbox FOR UPDATE SKIP LOCKED", ok},
		{"relay", "INSERT INTO outbox_version (version, admits) VALUES (9, 9)", denied},
		{"relay", "CREATE TABLE mine (id integer)", denied},
		{"relay", "DELETE FROM outbox", ok},

		{"migrator", "ALTER TABLE outbox ADD later integer", ok},
		{"migrator", "CREATE TABLE outbox_more (id integer)", ok},
	}
	for _, c := range cases {
		if got := sqlState(d.as(c.role, c.query)); got != c.code {
			t.Errorf("%s: %s: SQLSTATE %q, want %q", c.role, c.query, got, c.code)
		}
	}
}

// The relay's role passes the checks of the start; others do not, nor does it where one grant is missing.
func TestRightsOfRoles(t *testing.T) {
	t.Parallel()
	cases := []struct {
		role, revoke string
		kind         error
		says         string
	}{
		{"relay", "", nil, ""},
		{"migrator", "", nil, ""},
		{"reader", "", dialect.ErrRights, "outbox_reader"},
		{"application", "", dialect.ErrRights, "GRANT outbox_relay"},
		{"relay", "REVOKE INSERT ON outbox_lease FROM outbox_relay", dialect.ErrRights, "INSERT on table outbox_lease"},
		{"relay", "REVOKE UPDATE (result) ON outbox FROM outbox_relay", dialect.ErrRights, "UPDATE (result) on table outbox"},
		{"relay", "REVOKE INSERT (payload, traceparent) ON outbox FROM outbox_relay", dialect.ErrRights, "INSERT (payload, traceparent) on table outbox"},
	}
	for _, c := range cases {
		d := withRoles(t)
		d.exec(t, c.revoke)
		d.url = d.with(t, "role=outbox_"+c.role)
		err := d.connect(t, dialect.Options{}).CheckShape(t.Context())
		if !errors.Is(err, c.kind) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, %s: CheckShape says %v, want %v and %q", c.role, c.revoke, err, c.kind, c.says)
		}
	}
}

// The rights of the relay's role are enough for every statement of the Store; those of the reader are not for a claim.
// EXPLAIN asks for the rights, and runs nothing.
func TestRelayRoleSuffices(t *testing.T) {
	t.Parallel()
	d := withRoles(t)
	explain := func(role, query string) error {
		return inTransaction(d.db, func(tx *sqlx.Tx) error {
			if _, err := tx.Exec("DEALLOCATE ALL; SET LOCAL ROLE outbox_" + role + "; PREPARE q AS " + query); err != nil {
				return err
			}
			var nulls string
			if err := tx.Get(&nulls, "SELECT repeat(', NULL', cardinality(parameter_types)) FROM pg_prepared_statements WHERE name = 'q'"); err != nil {
				return err
			}
			call := "EXPLAIN EXECUTE q"
			if nulls != "" {
				call += "(" + strings.TrimPrefix(nulls, ", ") + ")"
			}
			_, err := tx.Exec(call)
			return err
		})
	}
	for name, query := range sqlQueries() {
		if err := explain("relay", query); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"claim", "settle_done", "renew", "move", "beat"} {
		if err := explain("reader", sqlQueries()[name]); sqlState(err) != "42501" {
			t.Errorf("the reader may %s: %v", name, err)
		}
	}
}

// Rows that cannot be are refused where they are written, by whomever.
func TestOddRows(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	const check, null, always = "23514", "23502", "428C9"
	cases := []struct{ name, query, code, constraint string }{
		{"type empty", "INSERT INTO outbox (type) VALUES ('')", check, "outbox_type_check"},
		{"type padded", "INSERT INTO outbox (type) VALUES ('paid ')", check, "outbox_type_check"},
		{"type behind a tab", "INSERT INTO outbox (type) VALUES (E'\tpaid')", check, "outbox_type_check"},
		{"type NULL", "INSERT INTO outbox (type) VALUES (NULL)", null, ""},
		{"aggregatetype padded", "INSERT INTO outbox (aggregatetype, type) VALUES ('orders   ', 'paid')", check, "outbox_aggregatetype_check"},
		{"aggregatetype empty", "INSERT INTO outbox (aggregatetype, type) VALUES ('', 'paid')", check, "outbox_aggregatetype_check"},
		{"both payloads", "INSERT INTO outbox (type, payload, payload_bytes) VALUES ('a', '', '')", check, "outbox_payload_check"},
		{"headers a list", "INSERT INTO outbox (type, headers) VALUES ('a', '[]')", check, "outbox_headers_check"},
		{"headers a string", `INSERT INTO outbox (type, headers) VALUES ('a', '"{}"')`, check, "outbox_headers_check"},
		{"headers no JSON", "INSERT INTO outbox (type, headers) VALUES ('a', '{a:1}')", "22P02", ""},
		{"headers empty", "INSERT INTO outbox (type, headers) VALUES ('a', '')", "22P02", ""},
		{"headers NULL", "INSERT INTO outbox (type, headers) VALUES ('a', NULL)", null, ""},
		{"due_at NULL", "INSERT INTO outbox (type, due_at) VALUES ('a', NULL)", check, "outbox_due_check"},
		{"due_at the sentinel", "INSERT INTO outbox (type, due_at) VALUES ('a', '9999-12-31 00:00:00+00')", check, "outbox_times_check"},
		{"due_at infinite", "INSERT INTO outbox (type, due_at) VALUES ('a', 'infinity')", check, "outbox_times_check"},
		{"due_at minus infinite", "INSERT INTO outbox (type, due_at) VALUES ('a', '-infinity')", check, "outbox_times_check"},
		{"id NULL", "INSERT INTO outbox (id, type) VALUES (NULL, 'a')", null, ""},
		{"content_type NULL", "INSERT INTO outbox (type, content_type) VALUES ('a', NULL)", null, ""},
		{"schema_version NULL", "INSERT INTO outbox (type, schema_version) VALUES ('a', NULL)", null, ""},
		{"seq chosen", "INSERT INTO outbox (type, seq) VALUES ('a', 1)", always, ""},
		{"routing_key chosen", "INSERT INTO outbox (type, routing_key) VALUES ('a', 'b')", always, ""},
		{"a fifth state", "UPDATE outbox SET state = 'dead', due_at = NULL", check, "outbox_state_check"},
		{"in flight and due", "UPDATE outbox SET state = 'in_flight'", check, "outbox_due_check"},
		{"pending and not due", "UPDATE outbox SET due_at = NULL", check, "outbox_due_check"},
		{"done without a time", "UPDATE outbox SET state = 'done', due_at = NULL", check, "outbox_done_check"},
		{"done_at and not done", "UPDATE outbox SET done_at = now()", check, "outbox_done_check"},
		{"failed without a reason", "UPDATE outbox SET state = 'failed', failed_at = now(), due_at = NULL", check, "outbox_reason_check"},
		{"failed without a time", "UPDATE outbox SET state = 'failed', reason = 'expired', due_at = NULL", check, "outbox_failed_check"},
		{"an eighth reason", "UPDATE outbox SET state = 'failed', failed_at = now(), reason = 'other', due_at = NULL", check, "outbox_reason_check"},
		{"a reason and not failed", "UPDATE outbox SET reason = 'expired'", check, "outbox_reason_check"},
		{"resolved and not failed", "UPDATE outbox SET resolved_at = now()", check, "outbox_resolved_check"},
		{"attempts below 0", "UPDATE outbox SET attempts = -1", check, "outbox_counters_check"},
		{"lapses below 0", "UPDATE outbox SET lapses = -1", check, "outbox_counters_check"},
		{"replays below 0", "UPDATE outbox SET replays = -1", check, "outbox_counters_check"},
		{"unknown_since infinite", "UPDATE outbox SET unknown_since = '-infinity'", check, "outbox_times_check"},
	}
	d.exec(t, "INSERT INTO outbox (type) VALUES ('row')")
	for _, c := range cases {
		_, err := d.db.Exec(c.query)
		var server *pq.Error
		if !errors.As(err, &server) || string(server.Code) != c.code || server.Constraint != c.constraint {
			t.Errorf("%s: %v, want SQLSTATE %s of constraint %q", c.name, err, c.code, c.constraint)
		}
	}
}

// The database's ids follow the clock, are version 7 of variant 10, and differ.
func TestUUID7(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	var wrong, count int
	query := `WITH made AS MATERIALIZED (SELECT clock_timestamp() AS before, outbox_uuid7() AS id, clock_timestamp() AS after FROM generate_series(1, 10000)),
		ms AS (SELECT *, ('x' || substr(replace(id::text, '-', ''), 1, 12))::bit(48)::bigint AS ms FROM made)
		SELECT count(*) FILTER (WHERE substr(id::text, 15, 1) <> '7' OR substr(id::text, 20, 1) NOT IN ('8', '9', 'a', 'b')
			OR ms < trunc(extract(epoch FROM before) * 1000) - 1 OR ms > trunc(extract(epoch FROM after) * 1000) + 1), count(DISTINCT id) FROM ms`
	if err := d.db.QueryRow(query).Scan(&wrong, &count); err != nil {
		t.Fatal(err)
	}
	if wrong != 0 || count != 10000 {
		t.Errorf("%d of 10000 ids are wrong, %d are different", wrong, count)
	}
}

func TestOutboxWrite(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	var id string
	err := inTransaction(d.db, func(tx *sqlx.Tx) error {
		// Another search_path than the one that it was made with: the function brings its own.
		if _, err := tx.Exec("SET LOCAL outbox.traceparent = '00-abc'; SET LOCAL search_path = pg_catalog"); err != nil {
			return err
		}
		return tx.Get(&id, "SELECT "+d.schema+`.outbox_write('paid  ', '{"id":7}', '7', 'orders  ', '{"a":"b"}', '10 minutes')`)
	})
	if err != nil {
		t.Fatal(err)
	}
	var ours int
	err = d.db.Get(&ours, `SELECT count(*) FROM outbox WHERE id = $1 AND routing_key = 'orders' AND type = 'paid' AND payload = '{"id":7}'
		AND aggregateid = '7' AND traceparent = '00-abc' AND headers = '{"a":"b"}' AND due_at > clock_timestamp() + interval '9 minutes'`, id)
	if err != nil || ours != 1 {
		t.Errorf("outbox_write did not write what it was given: %d rows, %v", ours, err)
	}
}
