package integration

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestOnce: run --once ends when nothing is left that it may send, with 0, or with 8 and what still waits and why.
func TestOnce(t *testing.T) {
	onEngines(t, once)
}

func once(t *testing.T, e engine) {
	d := e.database(t)
	topic := newTopic(t, 3)
	config := configFile(t, fmt.Sprintf(`
relay: {name: a, lease: 10s}
http: {listen: "off"}
destinations: {broker: {kafka: {brokers: [%q], topic: %q}}}
routes: [{match: order_paid, to: broker, versions: [1]}]
`, brokers(t)[0], topic))
	drain := func(code int, want string) {
		t.Helper()
		stdout, stderr, got := outboxd(t, d.env(), "run", "--once", "--config", config)
		if got != code || stdout != "" || want != "" && lastLine(stderr) != want {
			t.Errorf("exit code %d, want %d; it says\n%s\nwant\n%s", got, code, stderr, want)
		}
	}
	drain(0, "")
	n := scale(5000)
	d.insert(t, n, "order_paid")
	drain(0, "")
	if left := d.count(t, "SELECT count(*) FROM outbox WHERE state <> 'done'"); left != 0 {
		t.Errorf("%d of %d messages are not done", left, n)
	}
	wantArrived(t, d, topic, n)

	d.exec(t, "INSERT INTO outbox (type, due_at) VALUES ('order_paid', {now} + {hour})")
	d.exec(t, "INSERT INTO outbox (type, schema_version) VALUES ('order_paid', 2)")
	d.insert(t, 3, "unrouted")
	drain(8, "outboxd: 5 messages left: 1 of order_paid delayed by the application, 1 of order_paid without a policy for their type "+
		"or version, 3 of unrouted without a route; see outboxd list --state pending")
}

// TestMigrateTwice: it can be repeated, and two at once do no harm.
func TestMigrateTwice(t *testing.T) {
	onEngines(t, migrateTwice)
}

func migrateTwice(t *testing.T, e engine) {
	d := e.empty(t, e)
	var said [4]string
	var all sync.WaitGroup
	for i := range said {
		all.Go(func() {
			_, stderr, code := outboxd(t, d.env(), "migrate", "up")
			said[i] = fmt.Sprint(code, " ", stderr)
		})
	}
	all.Wait()
	applied := 0
	for _, words := range said {
		switch words {
		case "0 applied 001_outbox.sql\n":
			applied++
		case "0 nothing to do: the tables are up to date\n":
		default:
			t.Errorf("one of %d at once: %s", len(said), words)
		}
	}
	if applied != 1 {
		t.Errorf("%d of %d at once applied the migration", applied, len(said))
	}
	d.insert(t, 1, "order_paid")
	if _, stderr, code := outboxd(t, d.env(), "migrate", "up"); code != 0 || stderr != "nothing to do: the tables are up to date\n" {
		t.Errorf("again: exit code %d, %s", code, stderr)
	}
	stdout, stderr, code := outboxd(t, d.env(), "migrate", "status", "-o", "jsonl")
	if want := `{"state":"current","version":1,"needed":1,"server":"`; code != 0 || !strings.HasPrefix(stdout, want) {
		t.Errorf("status: exit code %d, %s%s", code, stdout, stderr)
	}
}

// TestRunMigrates: the relay makes its tables only where it is told to, and two that start at once do no harm.
func TestRunMigrates(t *testing.T) {
	onEngines(t, runMigrates)
}

func runMigrates(t *testing.T, e engine) {
	d := e.empty(t, e)
	for i := range 2 {
		startRelay(t, e.plainConfig(), append(d.env(), "OUTBOXD_MIGRATE=1", fmt.Sprintf("OUTBOXD_RELAY_NAME=r%d", i)))
	}
	eventually(t, patience, func() error {
		var n int
		return d.QueryRowContext(t.Context(), "SELECT count(*) FROM outbox_relay").Scan(&n) // until the table is there
	})
	d.waitCount(t, patience, 2, "SELECT count(*) FROM outbox_relay")
	d.insert(t, 100, "order_paid")
	d.waitCount(t, patience, 100, "SELECT count(*) FROM outbox WHERE state = 'done' AND attempts = 1")
}
