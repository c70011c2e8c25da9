package mysql

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

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
			"mysql://u:" + password + "@127.0.0.1:1/db",
			"mysql://u:" + url.QueryEscape(password) + "@127.0.0.1:1/db",
			"mysql://u:" + password + "@127.0.0.1:port/db",
			"mysql://127.0.0.1:1/db?password=" + password,
			"mysql://u@127.0.0.1:1/db?sslmode=" + password,
			"mysql://u@127.0.0.1:1/db?sslrootcert=" + password,
			"mysql://u:" + password,
			password + "://u@127.0.0.1:1/db",
			"u:" + password + "@tcp(127.0.0.1:1)/db",
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
		u := url.URL{Scheme: "mysql", User: url.UserPassword("u", password), Host: "127.0.0.1:1", Path: "/db"}
		config, err := parseURL(u.String(), false)
		if err != nil || config.Passwd != password {
			t.Errorf("%q does not arrive: %v", password, err)
		}
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	const none, any, full, prefer = "none", "any", "full", "prefer"
	cases := []struct {
		url      string
		insecure bool
		tls      string // empty: refused
		says     string // the address, or the error
	}{
		{"mysql://u@127.0.0.1/db", false, none, "127.0.0.1:3306"},
		{"mariadb://u@localhost:3307/db", false, none, "localhost:3307"},
		{"mysql://u@[::1]/db", false, none, "[::1]:3306"},
		{"mysql://u@/db?socket=/run/mysqld/mysqld.sock", false, none, "/run/mysqld/mysqld.sock"},
		{"mysql://u@db.example/db", false, full, "db.example:3306"},
		{"mysql://u@db.example/db", true, prefer, "db.example:3306"},
		{"mysql://u@10.0.0.1/db", false, full, "10.0.0.1:3306"},
		{"mysql://u@db.example/db?sslmode=require", false, any, "db.example:3306"},
		{"mysql://u@db.example/db?ssl-mode=REQUIRED", false, any, "db.example:3306"},
		{"mysql://u@db.example/db?ssl_mode=VERIFY_IDENTITY", true, full, "db.example:3306"},
		{"mysql://u@db.example/db?sslmode=verify-ca", true, any, "db.example:3306"},
		{"mysql://u@db.example/db?tls=skip-verify", false, any, "db.example:3306"},
		{"mysql://u@db.example/db?tls=true", false, full, "db.example:3306"},
		{"mysql://u@db.example/db?tls=false", false, none, "db.example:3306"},
		{"mysql://u@db.example/db?useSSL=false", false, none, "db.example:3306"},
		{"mysql://u@127.0.0.1/db?sslmode=verify-full", true, full, "127.0.0.1:3306"},
		{"mysql://u@127.0.0.1/db?charset=latin1&parseTime=true&serverVersion=8.0.32&multiStatements=true&loc=Local", false, none, "127.0.0.1:3306"},
		{"mysql://u@db.example/db?sslmode=maybe", false, "", "verify-full"},
		{"mysql://u@db.example/db?sslrootcert=/none", false, "", "sslrootcert"},
		{"mysql://u:12#x@127.0.0.1/db", false, "", "%23"},
		{"mysql://u:12?x@127.0.0.1/db", false, "", "%3F"},
		{"mysql://u:12/x@127.0.0.1/db", false, "", "%2F"},
		{"mysql://u@127.0.0.1/a/b", false, "", "mysql://"},
		{"postgres://u@db.example/db", false, "", "mysql://"},
		{"u@tcp(127.0.0.1:3306)/db", false, "", "mysql://"},
		{"db.example", false, "", "mysql://"},
		{"", false, "", "mysql://"},
	}
	for _, c := range cases {
		config, err := parseURL(c.url, c.insecure)
		if err != nil || c.tls == "" {
			if err == nil || c.tls != "" || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: error %v, want %q in it, or none: %v", c.url, err, c.says, c.tls != "")
			}
			continue
		}
		have := full
		switch {
		case config.TLS == nil:
			have = none
		case config.AllowFallbackToPlaintext:
			have = prefer
		case config.TLS.InsecureSkipVerify:
			have = any
		}
		if have != c.tls || config.Addr != c.says || config.DBName != "db" || config.MultiStatements {
			t.Errorf("%s, insecure %v: TLS %s, address %s, database %s, want %s, %s", c.url, c.insecure, have, config.Addr, config.DBName, c.tls, c.says)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	const here = "mysql://u@127.0.0.1/db"
	for says, o := range map[string]dialect.Options{
		"NUL":               {URL: here, Schema: "a\x00b"},
		"64 characters":     {URL: here, Schema: strings.Repeat("a", 65)},
		"blank":             {URL: here, Schema: "a "},
		"6s or more":        {URL: here, Lease: 5 * time.Second},
		"names no database": {URL: "mysql://u@127.0.0.1/"},
	} {
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q in it", o, err, says)
		}
	}
}

// Each session of both pools has the settings, whatever the server's defaults are.
func TestSessionSettings(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"@@autocommit": "1", "@@time_zone": "+00:00", "@@innodb_lock_wait_timeout": "1", "@@lock_wait_timeout": "1", "@@wait_timeout": "60",
		"@@character_set_client": "utf8mb4", "@@character_set_connection": "utf8mb4", "@@character_set_results": "utf8mb4",
		"@@sql_mode": "STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
	}
	of := map[string]map[string]string{
		"MySQL": {
			"@@transaction_isolation": "READ-COMMITTED", "@@transaction_read_only": "0", "@@collation_connection": "utf8mb4_0900_bin", "@@max_execution_time": "5000",
		},
		"MariaDB": {
			"@@tx_isolation": "READ-COMMITTED", "@@tx_read_only": "0", "@@collation_connection": "utf8mb4_nopad_bin", "@@max_statement_time": "5",
			"@@idle_transaction_timeout": "10",
		},
	}
	onBoth(t, func(t *testing.T, s testServer) {
		db := s.newSchema(t).connect(t, dialect.Options{Name: "me:too, here", Lease: 6 * time.Second})
		for _, pool := range []*sqlx.DB{db.work, db.keep} {
			for _, settings := range []map[string]string{want, of[s.name]} {
				for setting, value := range settings {
					var have string
					if err := pool.Get(&have, "SELECT "+setting); err != nil {
						t.Fatal(err)
					}
					if have != value {
						t.Errorf("%s is %s, want %s", setting, have, value)
					}
				}
			}
		}
	})
}

// A lock's time-out is at most a sixth of the lease, in whole seconds, and 2 s at most.
func TestLimits(t *testing.T) {
	t.Parallel()
	for lease, want := range map[time.Duration]limits{
		0:                  {lock: 2 * time.Second},
		6 * time.Second:    {time.Second, 5 * time.Second, 10 * time.Second, time.Minute},
		11 * time.Second:   {time.Second, 5500 * time.Millisecond, 10500 * time.Millisecond, time.Minute},
		30 * time.Second:   {2 * time.Second, 15 * time.Second, 20 * time.Second, time.Minute},
		10 * time.Minute:   {2 * time.Second, 30 * time.Second, 35 * time.Second, 5 * time.Minute},
		3600 * time.Second: {2 * time.Second, 30 * time.Second, 35 * time.Second, 30 * time.Minute},
	} {
		if have := limitsOf(lease); have != want {
			t.Errorf("of a lease of %s: %+v, want %+v", lease, have, want)
		}
	}
}

// What is no MySQL is said to be none, or to be silent where it waits for its client to speak first.
func TestOtherServices(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	for name, c := range map[string]struct {
		address string
		class   dialect.Class
		kind    error
		says    string
	}{
		"SSH":  {speak(t, "SSH-2.0-OpenSSH_9.2\r\n"), "", dialect.ErrServer, "is no MySQL or MariaDB"},
		"mail": {speak(t, "220 mail.example ESMTP\r\n"), "", dialect.ErrServer, "is no MySQL or MariaDB"},
		"web":  {web.Listener.Addr().String(), dialect.Away, nil, "does not greet as MySQL does"},
		"shut": {speak(t, ""), dialect.Away, nil, "broke off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := Open(dialect.Options{URL: "mysql://u:QzQx@" + c.address + "/db"})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			_, err = db.CheckSchema(t.Context())
			if dialect.ClassOf(err) != c.class || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || leaks(err.Error()) {
				t.Errorf("the error is %v, want %q", err, c.says)
			}
		})
	}
}

// speak is a service that sends a text to whoever connects, and ends.
func speak(t *testing.T, text string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(text))
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}

// MySQL makes itself a certificate: it is taken where the URL asks for no more than encryption, and refused where it is to
// be trusted. MariaDB has none before version 11.4, and is told of.
func TestTLS(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newSchema(t)
		url := d.url
		for mode, c := range map[string]struct {
			class dialect.Class
			says  string
		}{
			"disable": {"", ""}, "prefer": {"", "TLS"}, "require": {"", "TLS"}, "verify-ca": {dialect.Login, "not trusted"}, "verify-full": {dialect.Login, "not trusted"},
		} {
			d.url = url + "?sslmode=" + mode
			db := d.connect(t, dialect.Options{})
			_, err := db.CheckSchema(t.Context())
			if err != nil && errors.Is(err, mysql.ErrNoTLS) && s.name == "MariaDB" && strings.Contains(err.Error(), "sslmode=disable") {
				continue
			}
			if dialect.ClassOf(err) != c.class || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("sslmode=%s: %v, want class %q and %q", mode, err, c.class, c.says)
			}
			if err != nil || s.name == "MariaDB" {
				continue
			}
			var name, cipher string
			if err := db.keep.QueryRow("SHOW STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher); err != nil || (cipher != "") != (c.says == "TLS") {
				t.Errorf("sslmode=%s: the cipher is %q, %v", mode, cipher, err)
			}
		}
	})
}
