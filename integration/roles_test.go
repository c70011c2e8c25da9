package integration

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/lib/pq"

	"github.com/outboxd/outboxd/outbox"
)

// withRoles gives a database the shipped roles, as an operator does: with psql.
func withRoles(t *testing.T) *database {
	t.Helper()
	if _, err := exec.LookPath("psql"); err != nil {
		t.Skip("psql is not installed, and gives the roles their rights")
	}
	d := newDatabase(t)
	script, stderr, code := outboxd(t, nil, "migrate", "print", "--script", "roles")
	if code != 0 {
		t.Fatal(stderr)
	}
	cmd := exec.CommandContext(t.Context(), "psql", "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", d.url)
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = environment(nil)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("roles.sql: %v\n%s", err, out)
	}
	return d
}

// as makes a login role that is a member of a shipped one, and returns the database's URL for it.
func (d *database) as(t *testing.T, role string) string {
	t.Helper()
	name := unique("outboxd_test")
	d.exec(t, "CREATE ROLE "+name+" LOGIN PASSWORD '"+secret+"' IN ROLE outbox_"+role)
	t.Cleanup(func() { onServer(t, os.Getenv("OUTBOXD_TEST_POSTGRES_URL"), "DROP ROLE "+name) })
	return rewrite(t, d.url, func(u *url.URL) { u.User = url.UserPassword(name, secret) })
}

// TestApplicationRole: the application writes, with RETURNING, ON CONFLICT and the Go helper, and learns what became of
// its messages; it reads no payload and sets no state.
func TestApplicationRole(t *testing.T) {
	t.Parallel()
	d := withRoles(t)
	app, err := sql.Open("postgres", d.as(t, "application"))
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	var id, state string
	row := app.QueryRowContext(t.Context(), `INSERT INTO outbox (aggregatetype, aggregateid, type, payload, headers, due_at)
		VALUES ('orders', '1', 'order_paid', '{}', '{"a":"b"}', clock_timestamp()) RETURNING id, state`)
	if err := row.Scan(&id, &state); err != nil || state != "pending" {
		t.Fatalf("INSERT RETURNING: state %q, %v", state, err)
	}
	again, err := app.ExecContext(t.Context(), "INSERT INTO outbox (id, type) VALUES ($1, 'order_paid') ON CONFLICT (id) DO NOTHING", id)
	if err != nil {
		t.Fatalf("ON CONFLICT: %v", err)
	}
	if n, err := again.RowsAffected(); err != nil || n != 0 {
		t.Errorf("ON CONFLICT wrote %d rows, %v", n, err)
	}
	tx, err := app.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	table := outbox.Table{Dialect: outbox.Postgres}
	ids, err := table.Write(t.Context(), tx, outbox.Message{Type: "order_paid", Payload: []byte("{}")})
	if err = errors.Join(err, tx.Commit()); err != nil {
		t.Fatalf("Write: %v", err)
	}
	for _, query := range []string{
		"SELECT payload FROM outbox", "SELECT * FROM outbox", "INSERT INTO outbox (type, payload) VALUES ('a', '') RETURNING payload",
		"INSERT INTO outbox (type, state) VALUES ('a', 'pending')", "INSERT INTO outbox (type, attempts) VALUES ('a', 1)",
		"UPDATE outbox SET state = 'pending'", "DELETE FROM outbox", "TRUNCATE outbox", "SELECT FROM outbox_attempt", "DELETE FROM outbox_lease",
	} {
		var denied *pq.Error
		if _, err := app.ExecContext(t.Context(), query); !errors.As(err, &denied) || denied.Code != "42501" {
			t.Errorf("%s: %v, want that it is denied", query, err)
		}
	}

	startRelay(t, plainConfig, []string{"OUTBOXD_DATABASE_URL=" + d.as(t, "relay")})
	for _, id := range append(ids, id) {
		eventually(t, patience, func() error {
			r, err := table.Result(t.Context(), app, id)
			if err == nil && r.State != "done" {
				err = fmt.Errorf("message %s is %s", id, r.State)
			}
			return err
		})
	}
}

// TestRelayRole: the shipped role of the relay suffices for all that a relay does: claims, outcomes of every kind, lapses,
// orphans and its farewell. Another role does not, and is told so at the start; what only looks does with less.
func TestRelayRole(t *testing.T) {
	t.Parallel()
	d := withRoles(t)
	env := []string{"OUTBOXD_DATABASE_URL=" + d.as(t, "relay")}
	broker, topic := newKafkaProxy(t), newTopic(t, 1)
	config := `
relay: {name: %s, lease: 2s}
http: {listen: "off"}
destinations: {broker: {kafka: {brokers: [%q], topic: %q}, timeout: 1s}}
routes: [{match: "*", to: broker}]
`
	killed := startRelay(t, fmt.Sprintf(config, "killed", broker.address(), topic), env)
	acknowledgement := broker.hold(responses("Produce"))
	d.insert(t, 10, "order_paid")
	acknowledgement.wait(t)
	killed.kill(t)
	acknowledgement.release()
	d.insert(t, 2, "lost")
	d.exec(t, "UPDATE outbox SET state = 'in_flight', due_at = NULL WHERE type = 'lost'")
	d.exec(t, `INSERT INTO outbox (type, headers) VALUES ('refused', '{"a": 1}')`)

	unanswered := broker.hold(responses("Produce"))
	r := startRelay(t, fmt.Sprintf(config, "heir", broker.address(), topic), env)
	d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox_relay WHERE name = 'heir'")
	d.waitCount(t, patience, 10, "SELECT count(*) FROM outbox_attempt WHERE relay = 'killed' AND outcome = 'lapse'")
	eventually(t, patience, func() error {
		if d.count(t, "SELECT count(*) FROM outbox_attempt WHERE relay = 'heir' AND outcome = 'unknown'") == 0 {
			return errors.New("no send without an answer")
		}
		return nil
	})
	unanswered.release()
	d.waitCount(t, patience, 12, "SELECT count(*) FROM outbox WHERE state = 'done'")
	d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox WHERE state = 'failed' AND reason = 'rejected'")
	reader := []string{"OUTBOXD_DATABASE_URL=" + d.as(t, "reader")}
	for _, command := range []string{"status", "list", "migrate status"} {
		if stdout, stderr, code := outboxd(t, reader, strings.Fields(command)...); code != 0 || stdout == "" {
			t.Errorf("%s as reader: exit code %d, %s", command, code, stderr)
		}
	}
	r.signal(t, syscall.SIGTERM)
	if code := r.wait(t, patience); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if log := r.stderr.String(); strings.Contains(log, "database fault") {
		t.Errorf("it may not do all that it does:\n%s", log)
	}

	_, stderr, code := outboxd(t, reader, "run", "--config", configFile(t, plainConfig))
	told := regexp.MustCompile(`^outboxd: role "\w+" may not [A-Z, ]+ on table outbox\w*: GRANT outbox_relay TO it, as roles.sql makes it$`)
	if code != 9 || !told.MatchString(lastLine(stderr)) || strings.Contains(stderr, secret) {
		t.Errorf("a reader runs a relay: exit code %d, want 9\n%s", code, stderr)
	}
}
