package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestRunOnceSendsAll(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.insert(100, "orders", "order_paid")
	code, stdout, stderr := cli(t, s.env(), "run", "--once")
	if code != exitOK || s.count("state = 'done' AND attempts = 1") != 100 {
		t.Fatalf("exit %d, %d done: %s", code, s.count("state = 'done'"), stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if len(lines) != 100 || !json.Valid([]byte(lines[0])) {
		t.Errorf("%d lines on the standard output, the first %q", len(lines), lines[0])
	}
}

func TestRunOnceOnAnEmptyTable(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	if code, stdout, stderr := cli(t, s.env(), "run", "--once"); code != exitOK || stdout != "" {
		t.Errorf("exit %d, %q: %s", code, stdout, stderr)
	}
}

// TestRunOnceTellsWhatIsLeft holds exit code 8, with each kind of message that waits and why.
func TestRunOnceTellsWhatIsLeft(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.insert(2, "orders", "order_paid")
	s.insert(3, "invoices", "invoice")
	s.exec("INSERT INTO " + s.schema + ".outbox (aggregatetype, type, due_at) VALUES ('orders', 'later', clock_timestamp() + interval '1 hour')")
	code, _, stderr := cli(t, s.env(), "run", "--once")
	want := "outboxd: 4 messages left: 3 of invoices without a route, 1 of orders delayed by the application; see outboxd list --state pending"
	if code != exitPartly || lastLine(stderr) != want {
		t.Errorf("exit %d: %s", code, lastLine(stderr))
	}
}

// TestRunOnceBrokersAway holds that brokers which do not answer stop no start, lose nothing and cost nothing.
func TestRunOnceBrokersAway(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.insert(5, "orders", "order_paid")
	code, _, stderr := cli(t, s.env("OUTBOXD_CONFIG=", "OUTBOXD_KAFKA_BROKERS=127.0.0.1:1"), "run", "--once")
	if code != exitPartly || !strings.HasPrefix(lastLine(stderr), "outboxd: 5 messages left: ") {
		t.Errorf("exit %d: %s", code, lastLine(stderr))
	}
	if n := s.count("state = 'pending' AND attempts = 0 AND error_class = 'refused'"); n == 0 {
		t.Errorf("no message tells why: %d", n)
	}
}

// TestRunWaitsForTheTables holds that the daemon waits, unready, until somebody migrates, and then works.
func TestRunWaitsForTheTables(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	address := freeAddress(t)
	_, stderr, stop := start(t, s.env("OUTBOXD_LISTEN="+address), "run")
	eventually(t, "unready", func() bool {
		code, body := ask(t, "http://"+address+"/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "run outboxd migrate up")
	})
	if code, _ := ask(t, "http://"+address+"/livez"); code != http.StatusOK {
		t.Errorf("livez: %d", code)
	}
	if code, _, stderr := cli(t, s.env(), "migrate", "up"); code != exitOK {
		t.Fatal(stderr)
	}
	s.insert(1, "orders", "order_paid")
	eventually(t, "sent", func() bool { return s.count("state = 'done'") == 1 })
	eventually(t, "ready", func() bool { code, _ := ask(t, "http://"+address+"/readyz"); return code == http.StatusOK })
	if n := strings.Count(stderr.String(), "waiting for the database"); n != 1 {
		t.Errorf("%d lines tell of the wait", n)
	}
	for _, want := range []string{
		`outboxd_sends_total{destination="out",outcome="done",type="order_paid"} 1`,
		`outboxd_sends_total{destination="out",outcome="retry",type="other"} 0`,
		`outboxd_destination_state{destination="out",state="ok"} 1`, "outboxd_db_up 1",
		`outboxd_claimed_messages_total{routing_key="orders"} 1`, "outboxd_build_info{", `outboxd_loop_last_tick_timestamp_seconds{loop="claim"}`,
	} {
		eventually(t, want, func() bool { _, body := ask(t, "http://"+address+"/metrics"); return strings.Contains(body, want) })
	}
	if code := stop(); code != exitOK {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if s.count("true") != 1 || s.relays() != 0 {
		t.Errorf("it left without a word")
	}
}

func TestRunWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	_, stderr, stop := start(t, environment("OUTBOXD_DATABASE_URL=postgres://127.0.0.1:1/d", "OUTBOXD_LISTEN=off"),
		"run", "-c", "testdata/config/stdout.yaml")
	eventually(t, "a line", func() bool { return strings.Contains(stderr.String(), "the database at 127.0.0.1:1 does not answer") })
	if code := stop(); code != exitOK {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestRunMigratesWhenToldTo(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	code, _, stderr := cli(t, s.env("OUTBOXD_MIGRATE=1"), "run", "--once")
	if code != exitOK || !strings.Contains(stderr, "migration applied") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// TestRunRefuses holds what no waiting mends: it ends at once, with one line that names the thing and the mend.
func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ harm, want string }{
		"newer and refused": {"INSERT INTO outbox_version (version, admits) VALUES (99, 99)", "install a newer outboxd"},
		"another shape":     {"ALTER TABLE outbox DROP COLUMN result", "has no column result"},
		"an index is gone":  {"DROP INDEX outbox_due", "outbox_due"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := migrated(t)
			s.exec("SET search_path = " + s.schema + "; " + c.harm + "; RESET search_path")
			_, stderr, _ := start(t, s.env(), "run")
			eventually(t, "refused", func() bool { return strings.Contains(stderr.String(), "outboxd: ") })
			if !strings.Contains(lastLine(stderr.String()), c.want) {
				t.Errorf("%s", lastLine(stderr.String()))
			}
		})
	}
}

func TestRunWithoutRights(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	role := s.schema + "_role"
	s.exec("CREATE ROLE " + role + " LOGIN PASSWORD 'hunter2'; GRANT USAGE ON SCHEMA " + s.schema + " TO " + role)
	t.Cleanup(func() { s.exec("DROP OWNED BY " + role + "; DROP ROLE " + role) })
	code, _, stderr := cli(t, s.env(envDatabase+"="+s.as(role, "hunter2")), "run")
	if code != exitNotAllowed || !strings.Contains(lastLine(stderr), "role") || strings.Contains(stderr, "hunter2") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	code, _, stderr = cli(t, s.env(envDatabase+"="+s.as(role, "hunter2")), "list")
	if code != exitNotAllowed {
		t.Errorf("list: exit %d: %s", code, stderr)
	}
}

// TestTakenAddress holds that a second relay on a host works without health checks.
func TestTakenAddress(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s.insert(1, "orders", "order_paid")
	code, _, stderr := cli(t, s.env("OUTBOXD_LISTEN="+listener.Addr().String()), "run", "--once")
	if code != exitOK || !strings.Contains(stderr, "no health checks and no metrics") || s.count("state = 'done'") != 1 {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// freeAddress is one that nobody listened on a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// ask returns status and body; status 0 where nobody answers.
func ask(t *testing.T, url string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}
