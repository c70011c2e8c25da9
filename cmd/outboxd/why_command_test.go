package main

import (
	"database/sql"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// looked is a database file that people look at.
type looked struct {
	t   *testing.T
	env lookup
	*sql.DB
}

// newFile is one with the tables of outboxd, and the configuration of testdata.
func newFile(t *testing.T) *looked {
	t.Helper()
	path := filepath.Join(t.TempDir(), "outbox.db")
	env := environment(envDatabase+"=sqlite:"+path, "OUTBOXD_CONFIG=testdata/config/stdout.yaml", "OUTBOXD_LISTEN=off")
	if code, _, stderr := cli(t, env, "migrate", "up"); code != exitOK {
		t.Fatalf("migrate up: exit %d: %s", code, stderr)
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &looked{t, env, db}
}

func (l *looked) exec(query string, args ...any) {
	l.t.Helper()
	if _, err := l.ExecContext(l.t.Context(), query, args...); err != nil {
		l.t.Fatalf("%v, in %s", err, query)
	}
}

// why asks, and gives the answers by id.
func (l *looked) why(ids ...string) map[string]answer {
	l.t.Helper()
	code, stdout, stderr := cli(l.t, l.env, append([]string{"why", "-o", "json"}, ids...)...)
	var list []answer
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || code != exitOK || len(list) != len(ids) {
		l.t.Fatalf("exit %d, %v, %s: %s", code, err, stdout, stderr)
	}
	answers := map[string]answer{}
	for _, a := range list {
		answers[a.ID] = a
	}
	return answers
}

// longAgo is a time as SQLite has it, which the clock of no test machine is before.
const longAgo = "1600000000000000"

// TestWhy holds that what is told is read from all tables, and from the configuration.
func TestWhy(t *testing.T) {
	t.Parallel()
	l := newFile(t)
	l.exec(`INSERT INTO outbox (id, aggregatetype, type, due_at) VALUES
		('due', 'orders', 'order_paid', ` + longAgo + `), ('elsewhere', 'invoices', 'invoice', ` + longAgo + `), ('flying', 'orders', 'order_paid', ` + longAgo + `)`)
	l.exec(`UPDATE outbox SET state = 'in_flight', due_at = NULL, lease_id = 7 WHERE id = 'flying'`)
	l.exec(`INSERT INTO outbox_lease (lease_id, relay, claimed_at, renewed_at, length, ids) VALUES (7, 'gone', ` + longAgo + `, ` + longAgo + `, 30000000, '[3]')`)
	l.exec(`INSERT INTO outbox (id, aggregatetype, type, state, due_at, failed_at, reason, error_class, last_error, attempts)
		VALUES ('failed', 'orders', 'order_paid', 'failed', NULL, ` + longAgo + `, 'rejected', 'http_4xx', '422', 1)`)
	l.exec(`INSERT INTO outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome, error_class, error)
		VALUES ('due', 0, 1, 'a', ` + longAgo + `, 1000000, 'retry', 'http_5xx', '503')`)
	l.exec(`UPDATE outbox SET lease_id = 6, attempts = 1, error_class = 'http_5xx', last_error = '503' WHERE id = 'due'`)

	got := l.why("due", "elsewhere", "flying", "failed")
	for id, want := range map[string][2]string{
		"due":       {"attempt 1 of 20 by relay a was turned down at 2020-09-13T12:26:41Z, ", "no relay is alive: "},
		"elsewhere": {"it has been due since 2020-09-13T12:26:40Z, ", "no relay is alive: "},
		"flying":    {"relay gone took it at 2020-09-13T12:26:40Z, ", "no relay is alive: "},
		"failed":    {"at 2020-09-13T12:26:40Z, ", "correct its payload, or replay it once its receiver takes it, under a new key: "},
	} {
		if a := got[id]; !strings.HasPrefix(a.Why, want[0]) || !strings.HasPrefix(a.Next, want[1]) {
			t.Errorf("%s: %+v", id, a)
		}
	}

	l.exec(`INSERT INTO outbox_relay (name, host, version, config_hash, destinations) VALUES ('a', 'h', '1', 'x', '["out"]')`)
	l.exec(`INSERT INTO outbox_control (kind, name, value) VALUES ('pause', 'routing_key:orders', '{"actor":"bob","note":"upgrade"}')`)
	l.exec(`INSERT INTO outbox_control (kind, name, owner, value) VALUES ('breaker', 'out', 'a', '{"state":"open","failures":5,"last_error":"refused"}')`)
	got = l.why("due", "elsewhere", "flying")
	for id, want := range map[string]string{
		"due":       "routing_key:orders is paused by bob (upgrade) until somebody resumes it; destination out is open at relay a, after 5 failures in a row: ",
		"elsewhere": "no route takes routing key invoices: add one to the configuration",
		"flying":    "relay a takes the message back after it saw the lease stand still for 30s: ",
	} {
		if a := got[id]; !strings.HasPrefix(a.Next, want) {
			t.Errorf("%s: %s\nwant %s", id, a.Next, want)
		}
	}
}

// TestWhyWithoutConfiguration holds that what only the configuration knows is promised by nobody: not that a relay takes what
// may have no route or be held, and not that a repeat is safe.
func TestWhyWithoutConfiguration(t *testing.T) {
	t.Parallel()
	l := newFile(t)
	l.exec(`INSERT INTO outbox (id, aggregatetype, aggregateid, type) VALUES ('due', 'nowhere', '4711', 'order_paid')`)
	l.exec(`INSERT INTO outbox (id, aggregatetype, aggregateid, type, state, due_at, failed_at, reason, error_class, last_error, attempts, unknown_since)
		VALUES ('lost', 'orders', '4711', 'order_paid', 'failed', NULL, ` + longAgo + `, 'unknown', 'reset', 'cut', 1, ` + longAgo + `)`)
	l.exec(`INSERT INTO outbox_relay (name, host, version, config_hash, destinations) VALUES ('a', 'h', '1', 'x', '["out"]')`)
	l.exec(`INSERT INTO outbox_control (kind, name, owner, value) VALUES ('breaker', 'out', 'a', '{"state":"open","failures":5,"last_error":"refused"}')`)
	file, _ := l.env(envDatabase)
	l.env = environment(envDatabase + "=" + file)
	got := l.why("due", "lost")
	const ask = "; which destination takes it, and for how long that remembers keys, only the configuration says: add -c FILE"
	for id, want := range map[string]string{
		"due": "its route may lead to out, which is open at relay a (refused); otherwise relay a takes it as soon as there is room, " +
			"if it has a route for routing key nowhere, and sends it: attempt 1" + ask,
		"lost": "look at its receiver for the key lost, or for the aggregateid 4711; if it did the work, resolve the message; if not, replay it, " +
			"under the key of before, lost: a receiver that remembers it drops what it did before, and one that does not does the work again; " +
			"a relay that knows the second by its configuration leaves the message out, unless the replay has --force" + ask,
	} {
		if got[id].Next != want {
			t.Errorf("%s: %s\nwant %s", id, got[id].Next, want)
		}
	}
}

// TestWhyCommand holds the forms of the answer, and the exit codes.
func TestWhyCommand(t *testing.T) {
	t.Parallel()
	l := newFile(t)
	l.exec(`INSERT INTO outbox (id, type, state, due_at, failed_at, resolved_at, reason)
		VALUES ('m1', 'mail', 'failed', NULL, ` + longAgo + `, ` + longAgo + `, 'cancelled')`)
	code, stdout, stderr := cli(t, l.env, "why", "m1")
	lines := strings.Split(stdout, "\n")
	if code != exitOK || stderr != "" || len(lines) != 4 || lines[2] != "  outboxd replay m1" ||
		!strings.HasPrefix(lines[0], "m1 is failed: at 2020-09-13T12:26:40Z, ") || !strings.HasPrefix(lines[1], "Next: nothing: it needs nothing more since ") {
		t.Errorf("exit %d, %q: %s", code, stdout, stderr)
	}
	code, stdout, stderr = cli(t, l.env, "why", "m1", "none", "m1", "-o", "jsonl")
	if code != exitNotFound || strings.Count(stdout, "\n") != 2 || stderr != "outboxd: no message has the id none\n" {
		t.Errorf("exit %d, %q: %s", code, stdout, stderr)
	}
	if code, stdout, _ := cli(t, l.env, "why", "none", "-o", "json"); code != exitNotFound || stdout != "[]\n" {
		t.Errorf("exit %d, %q", code, stdout)
	}
	for args, want := range map[string]string{
		"why":            "outboxd: outboxd why takes the id of a message, or several; see outboxd why --help\n",
		"why m1 -o yaml": "outboxd: -o wants table, json or jsonl\n",
	} {
		if code, _, stderr := cli(t, l.env, strings.Fields(args)...); code != exitUsage || stderr != want {
			t.Errorf("%s: exit %d: %s", args, code, stderr)
		}
	}
}

// TestGetTimeline holds that the table shows the timeline and no payload, and JSON the rows of outbox_attempt.
func TestGetTimeline(t *testing.T) {
	t.Parallel()
	l := newFile(t)
	l.exec(`INSERT INTO outbox (id, type, payload, replays, lease_id, attempts, error_class, last_error) VALUES ('m1', 'mail', 'secret', 1, 7, 1, 'http_5xx', '503')`)
	l.exec(`INSERT INTO outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome, status, error_class, error, answer)
		SELECT 'm1', 0, 1, 'a', created_at, 1500000, 'retry', 503, 'http_5xx', '503', 'go' || char(27) || '[2J away' FROM outbox`)
	l.exec(`INSERT INTO outbox_operation (op, filter, actor, note, applied_at, affected)
		SELECT 'replay', '{"ids":["m1"]}', 'ann', 'mended', created_at + 2000000, 1 FROM outbox`)
	for n, detail := range []string{"", `{"skipped":{"locked":1}}`, `{"skipped":{}}`} {
		l.exec(`INSERT INTO outbox_operation (id, op, filter, actor, note, applied_at, affected, detail)
			SELECT ?, 'correct', '{}', 'bea', 'no ' || ?, created_at + 3000000, 1, nullif(?, '') FROM outbox`, string(rune('a'+n)), n, detail)
		l.exec(`INSERT INTO outbox_correction (operation_id, id) VALUES (?, 'm1')`, string(rune('a'+n)))
	}
	l.exec(`INSERT INTO outbox_operation (id, op, filter, applied_at, affected) SELECT 'other', 'correct', '{}', created_at, 1 FROM outbox`)
	l.exec(`INSERT INTO outbox_correction (operation_id, id) VALUES ('other', 'm2')`)
	for filter, affected := range map[string]int{`{"ids":["m1","m2"]}`: 1, `{"ids":["m2"]}`: 1, `{"state":"failed"}`: 5} {
		l.exec(`INSERT INTO outbox_operation (op, filter, applied_at, affected) SELECT 'replay', ?, created_at, ? FROM outbox`, filter, affected)
	}
	code, stdout, stderr := cli(t, l.env, "get", "m1", "--attempts")
	_, table, _ := strings.Cut(times(stdout), "\n\n")
	want := []string{
		"AT AFTER EVENT ATTEMPT RELAY TOOK STATUS ERROR ANSWER",
		"TIME - created - - - - - -",
		"TIME +0s retry 1 a 1.5s 503 http_5xx (503) go\\x1b[2J away",
		"TIME +0s due - - - - - -",
		"TIME +2s replay by ann (mended) - - - - - -",
		"TIME +1s correct by bea (no 2) - - - - - -",
		"TIME +0s correct by bea (no 0) - - - - - -",
	}
	var got []string
	for line := range strings.Lines(table) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if code != exitOK || stderr != "" || strings.Join(got, "\n") != strings.Join(want, "\n") || strings.Contains(stdout, "secret") {
		t.Errorf("exit %d, %s: %s", code, stdout, stderr)
	}
	code, stdout, _ = cli(t, l.env, "get", "m1", "--attempts", "--payload", "-o", "json")
	var list []struct {
		Attempts []struct{ Outcome string } `json:"outbox_attempt"`
		Payload  string
	}
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || code != exitOK || len(list[0].Attempts) != 1 || list[0].Payload != "secret" {
		t.Errorf("exit %d, %v: %s", code, err, stdout)
	}
	if code, stdout, _ := cli(t, l.env, "get", "m1"); code != exitOK || strings.Contains(stdout, "created -") || strings.Contains(stdout, "AFTER") {
		t.Errorf("exit %d: %s", code, stdout)
	}
}
