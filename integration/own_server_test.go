package integration

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"
)

// ownServer is a server that one test has for itself, to end, start and set up as it likes.
type ownServer struct {
	engine
	folder, url string // the URL is a superuser's
	order       io.WriteCloser
	ended       chan struct{}
}

// keeper runs a server and ends it by the signal that it reads, or where the test is gone without a word.
const keeper = `"$0" "$@" </dev/null & server=$!
read -r signals
for signal in ${signals:-KILL}; do kill -s "$signal" "$server"; done
wait "$server"`

// ownServer prepares a server, which is not started yet. It is away at the end of the test.
func (e engine) ownServer(t *testing.T) *ownServer {
	t.Helper()
	need(t, e.variable())
	folder, err := os.MkdirTemp("", "outboxd-server-") //nolint:usetesting // a test's own folder lies in one that the server's user may not enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	out, err := exec.CommandContext(t.Context(), "../scripts/servers", "prepare", e.name, folder).Output()
	var failed *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &failed) && os.Geteuid() != 0:
		t.Skipf("no server of its own can be had here: %s", failed.Stderr)
	case errors.As(err, &failed):
		t.Fatalf("%s", failed.Stderr)
	default:
		t.Fatal(err)
	}
	s := &ownServer{engine: e, folder: folder, url: strings.TrimSpace(string(out))}
	t.Cleanup(func() { s.end("KILL") })
	return s
}

func (e engine) variable() string { return "OUTBOXD_TEST_" + strings.ToUpper(e.name) + "_URL" }

// start starts it with further arguments and waits until it answers.
func (s *ownServer) start(t *testing.T, args ...string) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(s.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command("bash", append([]string{"-c", keeper, filepath.Join(s.folder, "server", "run")}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if s.order, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	s.ended = ended
	go func() {
		_ = cmd.Wait() // the signal that we sent
		close(ended)
	}()
	db := s.connect(t, s.url, "")
	eventually(t, patience, func() error {
		if err := db.PingContext(t.Context()); err != nil {
			return fmt.Errorf("the server does not answer: %w; its log is %s", err, log.Name())
		}
		return nil
	})
}

// stop ends it as its service does, with the sessions that are there; crash, as a failing machine does.
func (s *ownServer) stop()  { s.end("INT TERM") } // PostgreSQL takes INT as that, the others TERM
func (s *ownServer) crash() { s.end("KILL") }

func (s *ownServer) end(signals string) {
	if s.order == nil {
		return
	}
	_, _ = io.WriteString(s.order, signals+"\n") // it may have ended by itself
	<-s.ended
	s.order.Close()
	s.order = nil
}

// connect opens a pool that keeps no connection while it is not used, since servers come and go. The database is the one
// named, or that of the URL. Settings of the sessions have the form name=value.
func (e engine) connect(t *testing.T, address, database string, settings ...string) *sql.DB {
	t.Helper()
	connector, err := e.connector(t, address, database, strings.Join(settings, "&"))
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(0)
	t.Cleanup(func() { db.Close() })
	return db
}

func (e engine) connector(t *testing.T, address, database, settings string) (driver.Connector, error) {
	t.Helper()
	if e.driver == "postgres" {
		return pq.NewConnector(rewrite(t, address, func(u *url.URL) {
			if database != "" {
				u.Path = "/" + database
			}
			u.RawQuery += "&" + settings
		}))
	}
	config, err := mysql.ParseDSN(mysqlDSN(t, address, database, settings))
	if err != nil {
		return nil, err
	}
	config.Logger = &mysql.NopLogger{} // of connections that break, as they should here
	return mysql.NewConnector(config)
}

// account makes a database on the server of a superuser's URL, and a user without rights beyond it. The program connects
// as that user, the test as the superuser.
func (e engine) account(t *testing.T, server, name string) *database {
	t.Helper()
	admin := database{DB: e.connect(t, server, ""), engine: e, name: name}
	admin.order(t, e.operator().create...)
	return &database{
		DB: e.connect(t, server, name), engine: e, name: name,
		url: rewrite(t, server, func(u *url.URL) { u.User, u.Path = url.User(name), "/"+name }),
	}
}

// forget takes an account away from a server that lives on, also while the test ends and its context is over.
func (d *database) forget(t *testing.T, server string) {
	t.Helper()
	admin := d.connect(t, server, "")
	for _, statement := range d.operator().drop {
		if _, err := admin.ExecContext(context.WithoutCancel(t.Context()), strings.ReplaceAll(statement, "{name}", d.name)); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

// migrate makes outboxd's tables.
func (d *database) migrate(t *testing.T) {
	t.Helper()
	if _, stderr, code := outboxd(t, d.env(), "migrate", "up"); code != 0 {
		t.Fatalf("outboxd migrate up: exit code %d\n%s", code, stderr)
	}
}
