package integration

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/outboxd/outboxd/outbox"
)

// withRoles gives a database the shipped roles.
func (e engine) withRoles(t *testing.T) *database {
	t.Helper()
	if e.driver == "postgres" {
		return withRoles(t)
	}
	return e.database(t)
}

// withRoles is that on PostgreSQL, as an operator does it: with psql.
func withRoles(t *testing.T) *database {
	t.Helper()
	if _, err := exec.LookPath("psql"); err != nil {
		t.Skip("psql is not installed, and gives the roles their rights")
	}
	d := newDatabase(t)
	cmd := exec.CommandContext(t.Context(), "psql", "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", d.url)
	cmd.Stdin = strings.NewReader(d.rolesScript(t))
	cmd.Env = environment(nil)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("roles.sql: %v\n%s", err, out)
	}
	return d
}

func (d *database) rolesScript(t *testing.T) string {
	t.Helper()
	script, stderr, code := outboxd(t, d.env(), "migrate", "print", "--script", "roles")
	if code != 0 {
		t.Fatal(stderr)
	}
	return script
}

// as makes a user with the rights of a shipped role, and returns the database's URL for it.
func (d *database) as(t *testing.T, role string) string {
	t.Helper()
	name := unique("outboxd_test")
	server := need(t, d.variable())
	if d.driver == "postgres" {
		d.exec(t, "CREATE ROLE "+name+" LOGIN PASSWORD '"+secret+"' IN ROLE outbox_"+role)
		t.Cleanup(func() { onServer(t, server, "DROP ROLE "+name) })
	} else {
		d.exec(t, "CREATE USER "+name+" IDENTIFIED BY '"+secret+"'")
		t.Cleanup(func() { onMySQL(t, server, "DROP USER "+name) })
		for _, grant := range d.grantsTo(t, "outbox_"+role) {
			d.exec(t, grant+" TO "+name)
		}
	}
	return rewrite(t, d.url, func(u *url.URL) { u.User = url.UserPassword(name, secret) })
}

// grantsTo are the grants to a role of MySQL. The tests grant them to users, since a role belongs to the whole server and
// keeps rights on tables that are gone.
func (d *database) grantsTo(t *testing.T, role string) (grants []string) {
	t.Helper()
	for statement := range strings.SplitSeq(d.rolesScript(t), ";\n") {
		grant, to, found := strings.Cut(statement, " TO ")
		if found && slices.Contains(strings.Split(strings.TrimSpace(to), ", "), role) {
			grants = append(grants, grant)
		}
	}
	if len(grants) == 0 {
		t.Fatalf("roles.sql grants nothing to %s", role)
	}
	return grants
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
	onServers(t, relayRole)
}

func relayRole(t *testing.T, e engine) {
	d := e.withRoles(t)
	env := []string{"OUTBOXD_DATABASE_URL=" + d.as(t, "relay")}
	broker, topic := newKafkaProxy(t), newTopic(t, 1)
	config := `
relay: {name: %s, lease: ` + e.leaseOf(2*time.Second).String() + `}
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
	d.exec(t, "UPDATE outbox SET state = 'in_flight', due_at = {not due} WHERE type = 'lost'")
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

	_, stderr, code := outboxd(t, reader, "run", "--config", configFile(t, e.plainConfig()))
	told := regexp.MustCompile(`^outboxd: (role "\w+"|the user) may not [A-Z, ]+ on table outbox\w*: GRANT outbox_relay TO it, as roles.sql makes it`)
	if code != 9 || !told.MatchString(lastLine(stderr)) || strings.Contains(stderr, secret) {
		t.Errorf("a reader runs a relay: exit code %d, want 9\n%s", code, stderr)
	}
}
