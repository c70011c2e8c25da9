package postgres

import (
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay/relaytest"
	outboxsql "github.com/outboxd/outboxd/sql"
)

// TestStore holds the Store to its contract on each way to a database, and where the database's own defaults would
// let claims fail or times be misread.
func TestStore(t *testing.T) {
	t.Parallel()
	strange := []string{"default_transaction_isolation = 'serializable'", "timezone = 'Asia/Kolkata'"}
	for name, way := range map[string]struct {
		pooler   bool
		settings []string // of the database
	}{
		"direct":                  {},
		"direct and SERIALIZABLE": {settings: strange},
		"pooler and SERIALIZABLE": {pooler: true, settings: strange},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newServer(t, way.pooler, way.settings...)
			relaytest.TestStore(t, func(t *testing.T) relaytest.Backend { return server.backend(t) })
		})
	}
}

// testServer is a database of its own on the test server, with a user who has the rights of a relay and no more.
type testServer struct {
	admin string // URL of the database for the superuser
	relay dialect.Options
}

// newServer makes a database that has the settings. Relays reach it through the pooler, if one is asked for.
func newServer(t testing.TB, pooler bool, settings ...string) testServer {
	t.Helper()
	return newServerIn(t, "UTF8", pooler, settings...)
}

func newServerIn(t testing.TB, encoding string, pooler bool, settings ...string) testServer {
	t.Helper()
	first := newSchema(t) // skips where there is no server
	name := "outboxd_test_" + strings.ToLower(rand.Text()[:16])
	password := rand.Text()
	s := testServer{admin: withDatabase(t, first.url, name)}
	s.relay = dialect.Options{URL: withUser(t, s.admin, name, password), Lease: 30 * time.Second, Insecure: true, Pooler: pooler}
	if pooler {
		s.relay.URL = withUser(t, withDatabase(t, poolerURL(t), name), name, password)
	}
	first.exec(t, "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING '"+encoding+"' LC_COLLATE 'C' LC_CTYPE 'C'")
	t.Cleanup(func() {
		first.exec(t, "DROP DATABASE "+name+" WITH (FORCE)")
		first.exec(t, "DROP ROLE "+name)
	})
	first.exec(t, "CREATE ROLE "+name+" LOGIN PASSWORD '"+password+"'")
	for _, setting := range settings {
		first.exec(t, "ALTER DATABASE "+name+" SET "+setting)
	}
	return s
}

// backend makes a schema with the tables and the roles.
func (s testServer) backend(t testing.TB) postgresBackend {
	t.Helper()
	b := postgresBackend{t: t, options: s.relay}
	b.url, b.schema = s.admin, "t"+strings.ToLower(rand.Text()[:16])
	b.db = b.open(t, "search_path="+b.schema, "default_transaction_isolation=read committed")
	b.SQLOperations = relaytest.SQLOperations{T: t, DB: b.db.DB, Bind: b.db.Rebind}
	b.exec(t, "CREATE SCHEMA "+b.schema)
	for _, file := range []string{"postgres/001_outbox.sql", "postgres/roles.sql"} {
		text, err := outboxsql.Files.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b.exec(t, string(text))
	}
	// Another backend of this server may grant the same at this moment.
	b.exec(t, "DO $$ BEGIN GRANT outbox_relay TO "+userOf(t, s.relay.URL)+"; EXCEPTION WHEN unique_violation THEN NULL; END $$")
	return b
}

func poolerURL(t testing.TB) string {
	t.Helper()
	pooler := os.Getenv("OUTBOXD_TEST_PGBOUNCER_URL")
	if pooler == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("OUTBOXD_TEST_PGBOUNCER_URL is not set")
		}
		t.Skip("OUTBOXD_TEST_PGBOUNCER_URL is not set: no pooler to test with")
	}
	return pooler
}

func withDatabase(t testing.TB, server, name string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal("the URL of the test server is none")
	}
	u.Path = "/" + name
	return u.String()
}

func withUser(t testing.TB, server, user, password string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal("the URL of the test server is none")
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

func userOf(t testing.TB, server string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal("the URL of the relays is none")
	}
	return u.User.Username()
}
