package integration

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
)

// plainConfig is a small configuration that works.
const plainConfig = `
relay: {name: a, lease: 2s}
http: {listen: "127.0.0.1:0"}
destinations: {screen: {stdout: {}}}
routes: [{match: "*", to: screen}]
`

// secret stands in every place where a password may be, and must come out nowhere.
const secret = "QzQx"

// TestBadInput: what no waiting mends ends at once, in one clear line that names the thing and the mend.
func TestBadInput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config string   // plainConfig where it is empty
		env    []string // a database beside it, unless it names one
		code   int
		want   string // FILE stands for the configuration's path
	}{
		"half a file": {
			config: "destinations:\n  screen: {stdout: {}\nroutes:\n  - {match",
			code:   3, want: "FILE:3:1: this is no YAML: ',' or '}' must be specified",
		},
		"an empty file": {
			config: "# nothing yet\n",
			code:   3, want: "destinations: there is none; name one in the file, or set OUTBOXD_KAFKA_BROKERS or OUTBOXD_WEBHOOK_URL",
		},
		"two mistakes": {
			config: "relay: {leas: 2s}\ndestinations: {screen: {stdout: {}}}\nroutes: [{match: \"*\", to: scren}]\n",
			code:   3,
			want: "FILE:1:9: relay: unknown key leas; did you mean lease?\n    1 |         leas:\n      |         ^\n" +
				"FILE:3:23: routes[0].to: names a destination that is not under destinations; did you mean screen?\n    3 |                       to:\n      |                       ^",
		},
		"order": {
			config: "destinations: {screen: {stdout: {}}}\nroutes:\n  - {match: orders, to: screen, ordered: true}\n",
			code:   3,
			want: "FILE:3:33: routes[0].ordered: order per key comes in a later release; take ordered out, or say false\n" +
				"    3 |                                 ordered:\n      |                                 ^",
		},
		"no brokers": {
			config: "destinations: {broker: {kafka: {topic: orders}}}\nroutes: [{match: \"*\", to: broker}]\n",
			code:   3,
			want: "FILE:1:25: destinations.broker.kafka.brokers: is empty; name at least one broker as host:port\n" +
				"    1 |                         kafka:\n      |                         ^",
		},
		"no database": {
			env:  []string{"OUTBOXD_DATABASE_URL="},
			code: 3, want: "outboxd: no database: set OUTBOXD_DATABASE_URL or OUTBOXD_DATABASE_URL_FILE, or database.url_file in the configuration",
		},
		"a password with a # in it": {
			env:  []string{"OUTBOXD_DATABASE_URL=postgres://u:a#" + secret + "@127.0.0.1:1/d"},
			code: 3, want: "outboxd: database: the database URL is not understood: write postgres://user:password@host:5432/database, " +
				"and in the password %40 for @, %23 for #, %2F for /, %3F for ?, %25 for %, %20 for a blank",
		},
		"a password with a # in it, on MySQL": {
			env:  []string{"OUTBOXD_RELAY_LEASE=6s", "OUTBOXD_DATABASE_URL=mysql://u:a#" + secret + "@127.0.0.1:1/d"},
			code: 3, want: "outboxd: database: the database URL is not understood: write mysql://user:password@host:3306/database, " +
				"and in the password %40 for @, %23 for #, %2F for /, %3F for ?, %25 for %, %20 for a blank",
		},
		"another database": {
			env:  []string{"OUTBOXD_DATABASE_URL=sqlserver://u:" + secret + "@127.0.0.1:1/d"},
			code: 3, want: "outboxd: database: the database URL begins with sqlserver: outboxd works on PostgreSQL, MySQL, MariaDB and SQLite",
		},
		"the URL of another language": {
			env:  []string{"OUTBOXD_DATABASE_URL=jdbc:mysql://127.0.0.1:1/d?user=u&password=" + secret},
			code: 3, want: "outboxd: database: the database URL is one of JDBC: write mysql://user:password@host:3306/database, " +
				"with user and password before the host",
		},
		"the address of a driver": {
			env:  []string{"OUTBOXD_DATABASE_URL=u:" + secret + "@tcp(127.0.0.1:1)/d"},
			code: 3, want: "outboxd: database: the database URL is not understood: write postgres://user:password@host:5432/database, " +
				"mysql://user:password@host:3306/database or sqlite:/path/to/file",
		},
		"a lease that InnoDB cannot have": {
			env:  []string{"OUTBOXD_DATABASE_URL=mysql://u:" + secret + "@127.0.0.1:1/d"},
			code: 3, want: "outboxd: database: the lease is too short for MySQL and MariaDB, whose lock time-outs are whole seconds: set it to 6s or more",
		},
		"a file that is not there": {
			env:  []string{"OUTBOXD_DATABASE_URL=sqlite:/no/such/folder/outbox.db"},
			code: 6, want: "outboxd: check the schema: there is no folder /no/such/folder: make it, or check the database URL (SQLITE_CANTOPEN 14)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := configFile(t, orPlain(c.config))
			env := append([]string{"OUTBOXD_DATABASE_URL=postgres://127.0.0.1:1/d"}, c.env...)
			_, stderr, code := outboxd(t, env, "run", "--config", file)
			got := withoutLog(strings.ReplaceAll(stderr, file, "FILE"))
			if code != c.code || got != c.want || strings.Contains(stderr, secret) {
				t.Errorf("exit code %d, want %d; it says\n%s\nwant\n%s", code, c.code, got, c.want)
			}
		})
	}
}

func orPlain(config string) string {
	if config == "" {
		return plainConfig
	}
	return config
}

// TestWrongServer: what answers at the database's address is no PostgreSQL, or lets nobody in.
func TestWrongServer(t *testing.T) {
	t.Parallel()
	mysql := "J\x00\x00\x00\x0a8.0.36\x00\x08\x00\x00\x00abcdefgh\x00\xff\xff\xff\x02\x00\xff\xdf\x15"
	for name, c := range map[string]struct{ answer, want string }{
		"MySQL": {mysql, "outboxd: what listens at ADDRESS is no PostgreSQL: check host and port of the database URL"},
		"HTTP": {
			"HTTP/1.1 400 Bad Request\r\n\r\n" + secret,
			"outboxd: what listens at ADDRESS is no PostgreSQL: check host and port of the database URL",
		},
		"wrong password": {
			"E\x00\x00\x00\x2cSFATAL\x00VFATAL\x00C28P01\x00Mno " + secret + "\x00\x00" + strings.Repeat("\x00", 12),
			"outboxd: check the schema: the server refuses this user or password: check the database URL and pg_hba.conf (SQLSTATE 28P01)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := answeringServer(t, c.answer)
			_, stderr, code := outboxd(t, []string{"OUTBOXD_DATABASE_URL=postgres://u:" + secret + "@" + address + "/d"},
				"run", "--config", configFile(t, plainConfig))
			if got := strings.ReplaceAll(lastLine(stderr), address, "ADDRESS"); code != 6 || got != c.want || strings.Contains(stderr, secret) {
				t.Errorf("exit code %d, want 6; it says\n%s\nwant\n%s", code, stderr, c.want)
			}
		})
	}
}

// answeringServer gives everybody who connects the same answer.
func answeringServer(t *testing.T, answer string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = client.Read(make([]byte, 1000)) // who has gone away by now learns nothing
			_, _ = client.Write([]byte(answer))
			client.Close()
		}
	})
	t.Cleanup(func() {
		listener.Close()
		serving.Wait()
	})
	return listener.Addr().String()
}

// withoutLog is what a program says beside its log.
func withoutLog(text string) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSuffix(text, "\n"), "\n"), func(line string) bool {
		return strings.HasPrefix(line, `{"time":`)
	})
	return strings.Join(lines, "\n")
}

// lastLine is the line that a program ended with; those before it are its log.
func lastLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return text[strings.LastIndex(text, "\n")+1:]
}

// TestWrongTables: tables that no relay may work on end the start, and every message stays.
func TestWrongTables(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		harm string
		code int
		want string
	}{
		"newer": {
			"INSERT INTO outbox_version (version, admits) VALUES (99, 99)", 6,
			"outboxd: the tables in the search_path are at version 99, which admits an outboxd built for version 99 or later; " +
				"this one was built for 1: install a newer outboxd",
		},
		"a column less": {
			"ALTER TABLE outbox DROP COLUMN result", 6,
			"outboxd: table outbox has no column result, so it is not the table that outboxd makes: name another schema for outboxd",
		},
		"another type": {
			"ALTER TABLE outbox ALTER last_error TYPE varchar(10)", 6,
			"outboxd: column last_error of table outbox is character varying(10) and must be text: change it back, or name another schema for outboxd",
		},
		"another default": {
			"ALTER TABLE outbox ALTER due_at SET DEFAULT now()", 6,
			"outboxd: column due_at of table outbox must have the default clock_timestamp(): run ALTER TABLE outbox ALTER due_at SET DEFAULT clock_timestamp()",
		},
		"no index": {
			"DROP INDEX outbox_due", 6,
			"outboxd: index outbox_due of table outbox must be USING btree (routing_key, lapses, due_at, seq) WHERE (due_at IS NOT NULL): " +
				"drop what has its name, and create it as outboxd migrate print shows it",
		},
		"no constraint": {
			"ALTER TABLE outbox DROP CONSTRAINT outbox_due_check", 6,
			"outboxd: table outbox has no valid constraint outbox_due_check: add it again as outboxd migrate print shows it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			d.insert(t, 1, "order_paid")
			d.exec(t, c.harm)
			env := []string{"OUTBOXD_DATABASE_URL=" + d.url}
			_, stderr, code := outboxd(t, env, "run", "--config", configFile(t, plainConfig))
			if code != c.code || lastLine(stderr) != c.want {
				t.Errorf("exit code %d, want %d; it says\n%s\nwant\n%s", code, c.code, stderr, c.want)
			}
			if n := d.count(t, "SELECT count(*) FROM outbox WHERE state = 'pending' AND lease_id = 0"); n != 1 {
				t.Error("the message was touched")
			}
		})
	}
}
