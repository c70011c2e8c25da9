package outbox_test

import (
	"errors"
	"testing"

	"github.com/lib/pq"
)

// TestApplicationRole is what an application without this package may do, and what nobody should be able to do with its
// password.
func TestApplicationRole(t *testing.T) {
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
