package postgres

import (
	"bytes"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
)

// hostile are passwords that break URLs. Their letters are found nowhere else in these tests.
func hostile() []string {
	return []string{
		"Qz%Qx", "Qz%zzQx", "Qz@Qx", "12@Qx", "Qz#Qx", "12#Qx", "12?Qx", "12/Qx", "Qz Qx", "Qz^Qx", "Qz:Qx", "Qz[Qx", `Qz"Qx\'`,
		"Qz\nQx", "Qz\x00Qx", "Qz{}|<>Qx", "Qz%00Qx",
	}
}

// leaks tells whether a text has a piece of one of the hostile passwords.
func leaks(text string) bool { return strings.Contains(text, "Qx") || strings.Contains(text, "Qz") }

// A password that somebody pasted as it is must not come back in an error, whether the URL is understood or the database
// that it seems to name does not answer.
func TestNoPasswordInErrors(t *testing.T) {
	t.Parallel()
	for _, password := range hostile() {
		for _, text := range []string{
			"postgres://u:" + password + "@127.0.0.1:1/db",
			"postgres://u:" + url.QueryEscape(password) + "@127.0.0.1:1/db",
			"postgres://u:" + password + "@127.0.0.1:port/db",
			"postgres://127.0.0.1:1/db?password=" + password,
			"postgres://u:" + password,
			password + "://u@127.0.0.1:1/db",
			"host=127.0.0.1 port=1 password=" + password,
			"mysql://u:" + password + "@127.0.0.1:1/db",
			password,
		} {
			db, err := Open(dialect.Options{URL: text})
			if err == nil {
				_, err = db.CheckSchema(t.Context())
				if closed := db.Close(); closed != nil {
					t.Error(closed)
				}
			}
			if err == nil || leaks(err.Error()) {
				t.Errorf("the error of %q is %v", text, err)
			}
		}
	}
}

// The same passwords, encoded, arrive as they are.
func TestPasswordsArrive(t *testing.T) {
	t.Parallel()
	for _, password := range hostile() {
		u := url.URL{Scheme: "postgres", User: url.UserPassword("u", password), Host: "127.0.0.1:1", Path: "/db"}
		config, err := parseURL(u.String(), false)
		if strings.ContainsRune(password, 0) {
			continue // PostgreSQL cannot take a NUL in any case.
		}
		if err != nil || config.Password != password {
			t.Errorf("%q arrives as %q, %v", password, config.Password, err)
		}
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	const disable, full, prefer = "disable", "verify-full", "prefer"
	cases := []struct {
		url      string
		insecure bool
		sslmode  string // empty: refused
		says     string
	}{
		{"postgres://u@127.0.0.1/db", false, disable, ""},
		{"postgresql://u@localhost:5433/db", false, disable, ""},
		{"postgres://u@[::1]:5433/db", false, disable, ""},
		{"postgres:///db?host=/run/postgresql", false, disable, ""},
		{"postgres://u@db.example/db", false, full, ""},
		{"postgres://u@db.example/db", true, prefer, ""},
		{"postgres://u@10.0.0.1/db", false, full, ""},
		{"postgres://u@127.0.0.1,db.example/db", false, full, ""},
		{"postgres://u@localhost/db?hostaddr=10.0.0.1", false, full, ""},
		{"postgres://u@db.example/db?sslmode=require", false, "require", ""},
		{"postgres://u@db.example/db?sslmode=disable", false, disable, ""},
		{"postgres://u@127.0.0.1/db?sslmode=verify-full", true, full, ""},
		{"postgres://u@db.example/db?sslmode=maybe", false, "", "not understood"},
		{"postgres://u:12#x@127.0.0.1/db", false, "", "%23"},
		{"postgres://u:12?x@127.0.0.1/db", false, "", "%3F"},
		{"postgres://u:12/x@127.0.0.1/db", false, "", "%2F"},
		{"mysql://u@db.example/db", false, "", "is not understood"},
		{"sqlite:///var/lib/o.db", false, "", "is not understood"},
		{"http://db.example/", false, "", "postgres://"},
		{"db.example", false, "", "postgres://"},
		{"", false, "", "postgres://"},
		{"host=db.example user=u", false, "", "postgres://"},
	}
	for _, c := range cases {
		config, err := parseURL(c.url, c.insecure)
		switch {
		case c.sslmode == "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: error %v, want %q in it", c.url, err, c.says)
		case c.sslmode != "" && (err != nil || string(config.SSLMode) != c.sslmode):
			t.Errorf("%s, insecure %v: sslmode %q, %v, want %q", c.url, c.insecure, config.SSLMode, err, c.sslmode)
		}
	}
}

func TestOpenRefusesSchema(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{"a\x00b", strings.Repeat("a", 64), "pg_mine"} {
		if _, err := Open(dialect.Options{URL: "postgres://u@127.0.0.1/db", Schema: schema}); err == nil {
			t.Errorf("the schema %q is accepted", schema)
		}
	}
}

// Each session and each transaction behind a pooler has the settings, whatever the server's defaults are.
func TestSessionSettings(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"transaction_isolation": "read committed", "enable_seqscan": "off", "enable_bitmapscan": "off", "jit": "off", "TimeZone": "UTC", "lock_timeout": "1s",
		"statement_timeout": "5s", "idle_in_transaction_session_timeout": "10s",
	}
	for name, db := range bothWays(t, dialect.Options{Name: "me", Lease: 6 * time.Second}) {
		for _, pool := range []*sqlx.DB{db.work, db.keep} {
			err := db.transaction(t.Context(), pool, func(tx *sqlx.Tx) error {
				for setting, value := range want {
					var have string
					if err := tx.Get(&have, "SELECT current_setting($1)", setting); err != nil {
						return err
					}
					if have != value {
						t.Errorf("%s: %s is %s, want %s", name, setting, have, value)
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A lock's time-out is at most a sixth of the lease, and 2 s at most.
func TestLimits(t *testing.T) {
	t.Parallel()
	for lease, want := range map[time.Duration]limits{
		0:                {lock: 2 * time.Second},
		time.Second:      {time.Second / 6, 5 * time.Second, 10 * time.Second},
		30 * time.Second: {2 * time.Second, 15 * time.Second, 20 * time.Second},
		time.Hour:        {2 * time.Second, 30 * time.Second, 35 * time.Second},
	} {
		if got := limitsOf(lease); got != want {
			t.Errorf("lease %v: %+v, want %+v", lease, got, want)
		}
	}
}

// Bytes, text, times and arrays come back as they went, with and without prepared statements.
func TestValuesArrive(t *testing.T) {
	t.Parallel()
	raw := []byte{0, 1, 255, '\\', 'x', '\'', 0x80}
	for name, db := range bothWays(t, dialect.Options{}) {
		err := db.read(t.Context(), func(q sqlx.ExtContext) error {
			var payload []byte
			var text string
			var texts pq.StringArray
			row := q.QueryRowxContext(t.Context(), "SELECT $1::bytea, $2::text, $3::text[]", raw, `{"a":"\n\\x"}`, pq.Array([]string{"a,b", `"`, ""}))
			if err := row.Scan(&payload, &text, &texts); err != nil {
				return err
			}
			if !bytes.Equal(payload, raw) || text != `{"a":"\n\\x"}` || strings.Join(texts, "|") != `a,b|"|` {
				t.Errorf("%s: came back as %x, %s, %q", name, payload, text, texts)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// bothWays opens a schema directly and without prepared statements, and another through the pooler if there is one.
func bothWays(t *testing.T, o dialect.Options) map[string]*DB {
	t.Helper()
	pooled := o
	pooled.Pooler = true
	ways := map[string]*DB{"direct": newSchema(t).connect(t, o), "without prepared statements": newSchema(t).connect(t, pooled)}
	if pooler := os.Getenv("OUTBOXD_TEST_PGBOUNCER_URL"); pooler != "" {
		behind := newSchema(t)
		behind.url = pooler
		ways["behind pgbouncer"] = behind.connect(t, pooled)
	} else if os.Getenv("CI") == "true" {
		t.Fatal("OUTBOXD_TEST_PGBOUNCER_URL is not set")
	}
	return ways
}

// What has no server's code is told without what the network said; what has one, in our words.
func TestFaultsInOurWords(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.exec(t, "INSERT INTO outbox (type, payload) VALUES ('a', 'QzQx')")
	cases := []struct {
		query string
		class dialect.Class
	}{
		{"INSERT INTO outbox (type, payload, headers) VALUES ('b', 'QzQx', '[]')", dialect.Refused},
		{"INSERT INTO outbox (type, payload, headers) VALUES ('b', 'QzQx', 'Qx')", dialect.Unreadable},
		{"INSERT INTO outbox (id, type) SELECT id, 'QzQx' FROM outbox", dialect.Duplicate},
		{"SELECT 'QzQx'::integer", dialect.Unreadable},
		{"SELECT qzqx FROM outbox", dialect.Missing},
		{"SELECT FROM qzqx", dialect.Missing},
		{"SET TRANSACTION READ ONLY; UPDATE outbox SET payload = 'QzQx'", dialect.ReadOnly},
		{"SET lock_timeout = 1; SET statement_timeout = 10; SELECT pg_sleep(1)", dialect.Cancelled},
	}
	for _, c := range cases {
		err := wrap("the query", inTransaction(d.db, func(tx *sqlx.Tx) error {
			_, err := tx.Exec(c.query)
			return err
		}))
		var e *dialect.Error
		if !errors.As(err, &e) || e.Class != c.class || e.Query != "the query" || leaks(err.Error()) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, class %s, want %s", c.query, err, dialect.ClassOf(err), c.class)
		}
	}
}

// fakeServer accepts connections and does to each what answer does.
func fakeServer(t *testing.T, answer func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			answer(c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

// A server that is away, wrong, or does not let us in: one line that names the thing and the mend.
func TestNoEntry(t *testing.T) {
	t.Parallel()
	closes := fakeServer(t, func(net.Conn) {})
	nonsense := fakeServer(t, func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\nQzQx")) })
	noTLS := fakeServer(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 8)); _, _ = c.Write([]byte("N")) })
	d := newSchema(t)
	server, err := url.Parse(d.with(t, "application_name=none"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(user, database, setting string) string {
		u := *server
		u.User, u.Path = url.UserPassword(user, "QzQx"), "/"+database
		return u.String() + "&" + setting
	}
	user, database := server.User.Username(), strings.TrimPrefix(server.Path, "/")
	cases := []struct {
		name, url string
		class     dialect.Class
		says      string
	}{
		{"closes", "postgres://u:QzQx@" + closes + "/db", dialect.Away, "check that the URL names a primary that runs"},
		{"says nonsense", "postgres://u:QzQx@" + nonsense + "/db", "", "is no PostgreSQL: check host and port of the database URL"},
		{"says nonsense to TLS", "postgres://u:QzQx@" + nonsense + "/db?sslmode=require", "", "is no PostgreSQL"},
		{"refuses", "postgres://u:QzQx@127.0.0.1:1/db", dialect.Away, "127.0.0.1:1 does not answer"},
		{"has no TLS", "postgres://u:QzQx@" + noTLS + "/db?sslmode=require", dialect.Login, "has no TLS"},
		{"no such user", at("qzqx_nobody", database, ""), dialect.Login, "user"},
		{"no such database", at(user, "qzqx_nowhere", ""), dialect.Login, "no database of this name"},
		{"read-only", at(user, database, "default_transaction_read_only=on"), dialect.Away, "standby"},
	}
	for _, c := range cases {
		db, err := Open(dialect.Options{URL: c.url})
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.CheckSchema(t.Context())
		if dialect.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.says) || leaks(err.Error()) {
			t.Errorf("%s: %v, class %q, want %q and %q", c.name, err, dialect.ClassOf(err), c.class, c.says)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A connection gives up a read or write without progress, but not while lib/pq keeps a deadline of its own.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		c := &patient{Conn: ours, patience: time.Minute}
		took := func(what string, f func([]byte) (int, error), want time.Duration) {
			t.Helper()
			begun := time.Now()
			if _, err := f(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != want {
				t.Errorf("%s ended with %v after %v, want %v", what, err, time.Since(begun), want)
			}
		}
		took("a read", c.Read, time.Minute)
		took("a write", c.Write, time.Minute)
		if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		took("a read of the login", c.Read, time.Second)
		took("a write of the login", c.Write, 0)
		if err := c.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		took("a read after the login", c.Read, time.Minute)
		if err := errors.Join(c.Close(), theirs.Close()); err != nil {
			t.Error(err)
		}
	})
}
