package mysql

import (
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// TestStore holds the Store to its contract on each server, beside applications whose sessions are as the server has them,
// and beside some whose sessions would misread times and cut texts.
func TestStore(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string][]string{
		"defaults":             nil,
		"strange applications": {"time_zone='+08:00'", "sql_mode=''"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, server testServer) {
				databases := &stock{make: func() backend { return server.backend(t, settings...) }}
				relaytest.TestStore(t, func(t *testing.T) relaytest.Backend { return databases.take(t) })
			})
		})
	}
}

// stock lends databases to one test after the other, emptied: to make and drop one takes longer than most cases. They go with
// the test that makes them.
type stock struct {
	make func() backend

	mu   sync.Mutex
	free []backend
}

func (s *stock) take(t *testing.T) backend {
	t.Helper()
	b, ok := s.pop()
	if !ok {
		b = s.make()
	}
	t.Cleanup(func() {
		b.exec(t, `START TRANSACTION; DELETE FROM outbox; DELETE FROM outbox_lease; DELETE FROM outbox_attempt;
			DELETE FROM outbox_operation; DELETE FROM outbox_correction; DELETE FROM outbox_control; DELETE FROM outbox_relay; COMMIT`)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free = append(s.free, b)
	})
	b.t, b.T = t, t
	return b
}

func (s *stock) pop() (b backend, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) == 0 {
		return backend{}, false
	}
	b = s.free[0]
	s.free = s.free[1:]
	return b, true
}

// eachServer runs a test in a database of its own on each product.
func eachServer(t *testing.T, run func(t *testing.T, b backend)) {
	t.Helper()
	onBoth(t, func(t *testing.T, server testServer) { run(t, server.backend(t)) })
}

// backend makes a database with the tables, and an account for its relays that has the rights of outbox_relay. Applications
// have sessions with these settings.
func (s testServer) backend(t testing.TB, settings ...string) backend {
	t.Helper()
	d := s.newDatabase(t)
	roles, err := Script("roles.sql", d.schema)
	if err != nil {
		t.Fatal(err)
	}
	d.exec(t, "CREATE USER "+d.schema)
	t.Cleanup(func() { d.exec(t, "DROP USER "+d.schema) })
	const role = "TO outbox_relay"
	for _, statement := range split(roles) {
		if strings.Contains(statement, role) {
			d.exec(t, strings.ReplaceAll(statement, role, "TO "+d.schema))
		}
	}
	b := backend{testDatabase: d, t: t}
	b.options = dialect.Options{URL: withUser(t, d.url, d.schema), Schema: d.schema, Lease: 30 * time.Second, Insecure: true}
	b.db = d.open(t, settings...)
	b.SQLOperations = relaytest.SQLOperations{T: t, DB: b.db.DB}
	return b
}

func withUser(t testing.TB, server, user string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal("the URL of the test server is none")
	}
	u.User = url.User(user)
	return u.String()
}
