package outbox_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/outboxd/outboxd/outbox"
)

// TestRoleOfPostgres is what an application without this package may do, and what nobody should be able to do with its
// password.
func TestRoleOfPostgres(t *testing.T) {
	t.Parallel()
	s := openPostgres(t, engines[0])
	const denied = "42501"
	for _, tt := range []struct{ query, code string }{
		{`INSERT INTO outbox (type, payload) VALUES ('t', '{}') RETURNING id`, ""},
		{`INSERT INTO outbox (id, type) VALUES ('` + id + `', 't')`, ""},
		{`INSERT INTO outbox (id, type) VALUES ('` + id + `', 't') ON CONFLICT (id) DO NOTHING`, ""},
		{`INSERT INTO outbox (id, type) VALUES ('` + id + `', 't') ON CONFLICT DO NOTHING`, ""},
		{`SELECT outbox_write('t', '{}', '42', 'orders')`, ""},
		{`SELECT id, state, reason, result, created_at, due_at, expires_at, done_at, failed_at, resolved_at FROM outbox`, ""},
		{`INSERT INTO outbox (type, due_at) VALUES ('t', NULL)`, "23514"},
		{`SELECT payload FROM outbox`, denied},
		{`SELECT payload_bytes FROM outbox`, denied},
		{`INSERT INTO outbox (type, payload) VALUES ('t', '{}') RETURNING payload`, denied},
		{`INSERT INTO outbox (type, state) VALUES ('t', 'done')`, denied},
		{`UPDATE outbox SET state = 'pending'`, denied},
		{`DELETE FROM outbox`, denied},
		{`TRUNCATE outbox`, denied},
		{`SELECT 1 FROM outbox_attempt`, denied},
		{`INSERT INTO outbox_operation (op, filter) VALUES ('replay', '{}')`, denied},
	} {
		_, err := s.app.ExecContext(t.Context(), tt.query)
		var fault *pq.Error
		switch {
		case tt.code == "" && err != nil:
			t.Errorf("%s: %v", tt.query, err)
		case tt.code != "" && (!errors.As(err, &fault) || string(fault.Code) != tt.code):
			t.Errorf("%s: got %v, want SQLSTATE %s", tt.query, err, tt.code)
		}
	}
}

// TestRoleOfMySQL is the same on MySQL and MariaDB.
func TestRoleOfMySQL(t *testing.T) {
	t.Parallel()
	const deniedColumn, deniedTable, check, null = 1143, 1142, 3819, 1048
	for _, e := range engines {
		if e.dialect != outbox.MySQL {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			s := e.open(t, e)
			for _, tt := range []struct {
				query string
				codes []uint16
			}{
				{`INSERT INTO outbox (type, payload) VALUES ('t', '{}')`, nil},
				{`INSERT INTO outbox (id, type) VALUES ('` + id + `', 't')`, nil},
				{`SELECT id, state, reason, result, created_at, due_at, expires_at, done_at, failed_at, resolved_at FROM outbox`, nil},
				{`INSERT INTO outbox (id, type) VALUES ('a b', 't')`, []uint16{check, 4025}},
				{`INSERT INTO outbox (type, due_at) VALUES ('t', NULL)`, []uint16{null}},
				{`SELECT payload FROM outbox`, []uint16{deniedColumn}},
				{`SELECT * FROM outbox`, []uint16{deniedColumn, deniedTable}},
				{`INSERT INTO outbox (type, state) VALUES ('t', 'done')`, []uint16{deniedColumn}},
				{`UPDATE outbox SET state = 'pending'`, []uint16{deniedColumn, deniedTable}},
				{`INSERT INTO outbox (id, type) VALUES ('` + id + `', 't') ON DUPLICATE KEY UPDATE type = 't'`, []uint16{deniedColumn, deniedTable}},
				{`DELETE FROM outbox`, []uint16{deniedTable}},
				{`TRUNCATE outbox`, []uint16{deniedTable}},
				{`SELECT 1 FROM outbox_attempt`, []uint16{deniedTable}},
				{`INSERT INTO outbox_operation (op, filter) VALUES ('replay', '{}')`, []uint16{deniedTable}},
			} {
				_, err := s.app.ExecContext(t.Context(), tt.query)
				var fault *mysql.MySQLError
				switch {
				case len(tt.codes) == 0 && err != nil:
					t.Errorf("%s: %v", tt.query, err)
				case len(tt.codes) > 0 && (!errors.As(err, &fault) || !slices.Contains(tt.codes, fault.Number)):
					t.Errorf("%s: got %v, want one of %v", tt.query, err, tt.codes)
				}
			}
		})
	}
}
