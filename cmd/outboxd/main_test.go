package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// asMain makes the test binary behave as outboxd itself, for what only a process can show: signals and exit codes.
const asMain = "OUTBOXD_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	// Tests that nohup runs would hand its deafness to the children that they send this signal to.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	goleak.VerifyTestMain(m)
}

// environment makes a lookup of pairs NAME=value.
func environment(pairs ...string) lookup {
	return func(name string) (string, bool) {
		for _, pair := range pairs {
			if key, value, _ := strings.Cut(pair, "="); key == name {
				return value, true
			}
		}
		return "", false
	}
}

// cli runs one command line in process, with nothing in the environment but env.
func cli(t *testing.T, env lookup, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return cliWith(t, "", env, args...)
}

func cliWith(t *testing.T, stdin string, env lookup, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err safeBuffer
	p := &program{env: env, stdin: strings.NewReader(stdin), stdout: &out, stderr: &err}
	code = p.run(t.Context(), args)
	return code, out.String(), err.String()
}

// start runs a command line in the background; stop ends it as a signal does and returns its exit code.
func start(t *testing.T, env lookup, args ...string) (stdout, stderr *safeBuffer, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stdout, stderr = &safeBuffer{}, &safeBuffer{}
	p := &program{env: env, stdin: strings.NewReader(""), stdout: stdout, stderr: stderr}
	code := make(chan int, 1)
	go func() { code <- p.run(ctx, args) }()
	stop = sync.OnceValue(func() int {
		cancel()
		return <-code
	})
	t.Cleanup(func() { stop() })
	return stdout, stderr, stop
}

// safeBuffer is a buffer that several goroutines may use.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// eventually waits until what is asked for is there.
func eventually(t *testing.T, what string, there func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for !there() {
		select {
		case <-deadline:
			t.Fatalf("%s: not after 30 s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// server is a PostgreSQL with an empty schema of the test's own.
type server struct {
	t      *testing.T
	url    string
	schema string
	*sql.DB
}

// newServer wants the server that OUTBOXD_TEST_POSTGRES_URL names.
func newServer(t *testing.T) *server {
	t.Helper()
	address := os.Getenv("OUTBOXD_TEST_POSTGRES_URL")
	if address == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("OUTBOXD_TEST_POSTGRES_URL is not set")
		}
		t.Skip("OUTBOXD_TEST_POSTGRES_URL is not set: there is no PostgreSQL to test with")
	}
	db, err := sql.Open("postgres", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, url: address, schema: fmt.Sprintf("cli_%08x", rand.Uint32()), DB: db}
	s.exec("CREATE SCHEMA " + s.schema)
	t.Cleanup(func() {
		s.exec("DROP SCHEMA " + s.schema + " CASCADE")
		_ = db.Close()
	})
	return s
}

// migrated is a server with the tables of outboxd.
func migrated(t *testing.T) *server {
	t.Helper()
	s := newServer(t)
	if code, _, stderr := cli(t, s.env(), "migrate", "up"); code != exitOK {
		t.Fatalf("migrate up: exit %d: %s", code, stderr)
	}
	return s
}

// env is an environment that leads to the server, with more pairs in front.
func (s *server) env(pairs ...string) lookup {
	return environment(append(pairs, envDatabase+"="+s.url, "OUTBOXD_DATABASE_SCHEMA="+s.schema, "OUTBOXD_LISTEN=off",
		"OUTBOXD_RELAY_LEASE=2s", "OUTBOXD_CONFIG=testdata/config/stdout.yaml")...)
}

func (s *server) exec(query string, args ...any) {
	s.t.Helper()
	if _, err := s.ExecContext(context.Background(), query, args...); err != nil {
		s.t.Fatalf("%s: %s", query, err)
	}
}

// insert writes messages of a type and a routing key.
func (s *server) insert(n int, aggregatetype, kind string) {
	s.t.Helper()
	s.exec(fmt.Sprintf(`INSERT INTO %s.outbox (aggregatetype, type, payload) SELECT $1, $2, '{"n":' || n || '}' FROM generate_series(1, $3::int) n`,
		s.schema), aggregatetype, kind, n)
}

// count counts the messages that a condition fits.
func (s *server) count(where string) (n int) {
	s.t.Helper()
	if err := s.QueryRowContext(context.Background(), "SELECT count(*) FROM "+s.schema+".outbox WHERE "+where).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// relays counts the relays that did not say goodbye.
func (s *server) relays() (n int) {
	s.t.Helper()
	if err := s.QueryRowContext(context.Background(), "SELECT count(*) FROM "+s.schema+".outbox_relay").Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// as is the server's URL for another role.
func (s *server) as(role, password string) string {
	s.t.Helper()
	u, err := url.Parse(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	u.User = url.UserPassword(role, password)
	return u.String()
}
