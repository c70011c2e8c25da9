package mysql

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// withRoles makes all tables and the roles' rights on them.
func (s testServer) withRoles(t *testing.T) testDatabase {
	t.Helper()
	d := s.newDatabase(t)
	d.revokeAtEnd(t)
	text, err := Script("roles.sql", d.schema)
	if err != nil {
		t.Fatal(err)
	}
	d.exec(t, text)
	return d
}

// revokeAtEnd takes back what roles.sql grants on the test's database: the servers keep rights longer than the database,
// and become slow with thousands of them.
func (d testDatabase) revokeAtEnd(t *testing.T) {
	t.Helper()
	text, err := Script("roles.sql", d.schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		grant := regexp.MustCompile(`(?ms)^GRANT (.*) TO (.*)`)
		for _, statement := range split(text) {
			if found := grant.FindStringSubmatch(statement); found != nil {
				_, _ = d.db.Exec("REVOKE " + found[1] + " FROM " + found[2]) // A test may have done so, or dropped the table.
			}
		}
	})
}

// account is the database as an account sees it that has nothing but one of the roles.
func (d testDatabase) account(t *testing.T, role string) testDatabase {
	t.Helper()
	root, user := d, d.schema+"_"+role[:3]
	d.exec(t, "CREATE USER "+user+" IDENTIFIED BY 'secret'; GRANT outbox_"+role+" TO "+user)
	t.Cleanup(func() { root.exec(t, "DROP USER "+user) })
	if d.server.name == "MySQL" {
		d.exec(t, "SET DEFAULT ROLE ALL TO "+user)
	} else {
		d.exec(t, "SET DEFAULT ROLE outbox_"+role+" FOR "+user)
	}
	u, err := url.Parse(d.url)
	if err != nil {
		t.Fatal("the URL of the test server is none")
	}
	u.User = url.UserPassword(user, "secret")
	d.url = u.String()
	d.db = d.open(t)
	return d
}

func TestRoles(t *testing.T) {
	t.Parallel()
	const ok, denied, deniedColumn = 0, 1142, 1143 // The servers differ in which of the two they say.
	cases := []struct {
		role, query string
		code        uint16
	}{
		{"application", "INSERT INTO outbox (id, type, payload) VALUES ('one', 'a', 'secret')", ok},
		{"application", "INSERT IGNORE INTO outbox (id, type) VALUES ('one', 'a')", ok},
		{"application", "INSERT INTO outbox (id, type) VALUES ('one', 'a')", duplicateEntry},
		{"application", "INSERT INTO outbox (aggregatetype, aggregateid, type, content_type, schema_version, headers, traceparent, due_at, expires_at) VALUES ('o', '1', 'a', 'text/plain', 2, '{}', '00', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))", ok},
		{"application", "SELECT id, state, reason, result, created_at, due_at, expires_at, done_at, failed_at, resolved_at FROM outbox", ok},
		{"application", "SELECT payload FROM outbox", denied},
		{"application", "INSERT INTO outbox (type, state) VALUES ('a', 'pending')", denied},
		{"application", "INSERT INTO outbox (type, attempts) VALUES ('a', 1)", denied},
		{"application", "INSERT INTO outbox (type, created_at) VALUES ('a', UTC_TIMESTAMP(6))", denied},
		{"application", "INSERT INTO outbox (type, seq) VALUES ('a', 7)", denied},
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

		{"operator", "INSERT INTO outbox_operation (id, op, filter, note, dry_run) VALUES ('one', 'cancel', '{}', 'n', true)", ok},
		{"operator", "INSERT INTO outbox_operation (op, filter, applied_at) VALUES ('cancel', '{}', UTC_TIMESTAMP(6))", denied},
		{"operator", "SELECT id FROM outbox", ok},
		{"operator", "SELECT payload FROM outbox", denied},
		{"operator", "UPDATE outbox_operation SET applied_at = UTC_TIMESTAMP(6)", denied},
		{"operator", "INSERT INTO outbox_correction (operation_id, id) VALUES ('one', 'one')", denied},

		{"corrector", "SELECT payload, state FROM outbox", ok},
		{"corrector", "INSERT INTO outbox_correction (operation_id, id, payload) VALUES ('one', 'one', 'p')", ok},
		{"corrector", "INSERT INTO outbox_correction (operation_id, id, payload, old_payload) SELECT 'two', id, 'p', payload FROM outbox", ok},
		{"corrector", "INSERT INTO outbox_operation (op, filter) VALUES ('correct', '{}')", ok},
		{"corrector", "UPDATE outbox SET payload = 'x'", denied},

		{"relay", "UPDATE outbox SET due_at = UTC_TIMESTAMP(6), lease_id = 1", ok},
		{"relay", "UPDATE outbox SET id = 'two'", denied},
		{"relay", "UPDATE outbox SET headers = '{}'", denied},
		{"relay", "INSERT INTO outbox (aggregatetype, aggregateid, type, payload, traceparent) VALUES ('o', '1', 'a', 'p', '00')", ok},
		{"relay", "INSERT INTO outbox (type, id) VALUES ('a', 'three')", denied},
		{"relay", "INSERT INTO outbox (type, state) VALUES ('a', 'pending')", denied},
		{"relay", "INSERT INTO outbox (type, due_at) VALUES ('a', UTC_TIMESTAMP(6))", denied},
		{"relay", "INSERT INTO outbox (type, headers) VALUES ('a', '{}')", denied},
		{"relay", "SELECT * FROM outbox FOR UPDATE SKIP LOCKED", ok},
		{"relay", "INSERT INTO outbox_version (version, admits) VALUES (9, 9)", denied},
		{"relay", "CREATE TABLE mine (id integer)", denied},
		{"relay", "DELETE FROM outbox", ok},

		{"migrator", "ALTER TABLE outbox ADD later integer", ok},
		{"migrator", "CREATE TABLE outbox_more (id integer)", ok},
	}
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.withRoles(t)
		accounts := map[string]*sqlx.DB{}
		for _, c := range cases {
			if accounts[c.role] == nil {
				accounts[c.role] = d.account(t, c.role).db
			}
			_, err := accounts[c.role].Exec(c.query)
			got := errorCode(err)
			if got == deniedColumn {
				got = denied
			}
			if got != c.code {
				t.Errorf("%s: %s: %v, want error %d", c.role, c.query, err, c.code)
			}
		}
	})
}

// The actor of an operation is whoever logged in.
func TestActor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.withRoles(t)
		operator := d.account(t, "operator")
		operator.exec(t, "INSERT INTO outbox_operation (op, filter) VALUES ('cancel', '{}')")
		var actor string
		if err := d.db.Get(&actor, "SELECT actor FROM outbox_operation"); err != nil || !strings.HasPrefix(actor, d.schema+"_ope@") {
			t.Errorf("the actor is %q, %v", actor, err)
		}
	})
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
		{"reader", "", dialect.ErrRights, "may not SELECT on table outbox: GRANT outbox_relay TO it"},
		{"relay", "REVOKE INSERT ON outbox_lease FROM outbox_relay", dialect.ErrRights, "may not INSERT on table outbox_lease: GRANT outbox_relay TO it"},
		{"relay", "REVOKE DELETE ON outbox_relay FROM outbox_relay", dialect.ErrRights, "may not DELETE on table outbox_relay"},
		{"relay", "REVOKE UPDATE (result) ON outbox FROM outbox_relay", dialect.ErrRights, "UPDATE (result) on table outbox"},
		{"relay", "REVOKE INSERT (payload, traceparent) ON outbox FROM outbox_relay", dialect.ErrRights, "may not INSERT (aggregatetype, aggregateid, type, payload, traceparent) on table outbox"},
	}
	onBoth(t, func(t *testing.T, s testServer) {
		for _, c := range cases {
			d := s.withRoles(t)
			d.exec(t, c.revoke)
			db := d.account(t, c.role).connect(t, dialect.Options{})
			checkState(t, db, dialect.SchemaCurrent)
			err := db.CheckShape(t.Context())
			if !errors.Is(err, c.kind) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %s: CheckShape says %v, want %v and %q", c.role, c.revoke, err, c.kind, c.says)
			}
		}
	})
}

// Who has no rights on the tables is told so, and not that they are missing; a wrong password is one.
func TestNoRights(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.withRoles(t)
		application := d.account(t, "application")
		if _, err := application.connect(t, dialect.Options{}).CheckSchema(t.Context()); dialect.ClassOf(err) != dialect.Rights {
			t.Errorf("the application is told %v", err)
		}
		application.url = strings.Replace(application.url, ":secret@", ":QzQx@", 1)
		if _, err := application.connect(t, dialect.Options{}).CheckSchema(t.Context()); dialect.ClassOf(err) != dialect.Login || leaks(err.Error()) {
			t.Errorf("with a wrong password the error is %v", err)
		}
	})
}

// The role of the migrator is enough to make the tables in a database that exists.
func TestMigratorRoleSuffices(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.withRoles(t)
		drop, err := Script("drop.sql", d.schema)
		if err != nil {
			t.Fatal(err)
		}
		d.exec(t, drop)
		db := d.account(t, "migrator").connect(t, dialect.Options{})
		if _, err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkState(t, db, dialect.SchemaCurrent)
		checkShape(t, db)
	})
}
