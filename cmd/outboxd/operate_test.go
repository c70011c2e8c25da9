package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// fail makes the messages of a type failed ones.
func (s *server) fail(kind, reason string) {
	s.t.Helper()
	s.exec("UPDATE "+s.schema+".outbox SET state = 'failed', due_at = NULL, failed_at = now(), attempts = 1, reason = $2 WHERE type = $1", kind, reason)
}

func (s *server) text(query string) (text string) {
	s.t.Helper()
	if err := s.QueryRowContext(s.t.Context(), strings.ReplaceAll(query, "outbox", s.schema+".outbox")).Scan(&text); err != nil {
		s.t.Fatalf("%s: %s", query, err)
	}
	return text
}

// TestOperate: count, ask, hand over, wait, tell.
func TestOperate(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.insert(7, "elsewhere", "order_paid")
	s.fail("order_paid", "rejected")
	code, id, stderr := cli(t, s.env(), "replay", "--state", "failed", "--limit", "5", "--note", "mended", "--yes")
	if code != exitOK || len(strings.TrimSpace(id)) != 36 || stderr != "replay: 7 messages\nno relay is alive: it is applied as soon as one runs\nwhat comes of it: outboxd operations "+id {
		t.Fatalf("exit %d, %q: %s", code, id, stderr)
	}
	if got := s.text("SELECT op || filter || note || coalesce(applier, '-') || (actor LIKE '%@%') FROM outbox_operation"); got != `replay{"state":"failed","limit":5}mended-true` {
		t.Errorf("asked for is %s", got)
	}
	start(t, s.env(), "run")
	eventually(t, "the replay is applied", func() bool { return s.count("state = 'pending' AND replays = 1") == 5 })

	code, _, stderr = cli(t, s.env(), "cancel", "--type", "order_paid", "--yes", "--wait")
	if code != exitOK || stderr != "cancel: 5 messages\napplied: 5 messages\n" || s.count("reason = 'cancelled' AND resolved_at IS NOT NULL") != 5 {
		t.Errorf("exit %d: %s", code, stderr)
	}
	code, _, stderr = cli(t, s.env(), "replay", "--state", "failed", "--yes", "--wait")
	if code != exitOK || stderr != "replay: 2 messages (left as they are: 5 resolved)\napplied: 2 messages (left as they are: 5 resolved)\n" {
		t.Errorf("exit %d: %s", code, stderr)
	}
	s.exec("UPDATE " + s.schema + ".outbox SET state = 'failed', due_at = NULL, failed_at = now(), reason = 'unknown', unknown_since = now() WHERE state = 'pending'")
	code, _, stderr = cli(t, s.env(), "resolve", "--reason", "unknown", "--note", "the receiver has both", "--dry-run")
	if code != exitOK || stderr != "dry run: resolve: 2 messages\ndry run: would change 2 messages\n" || s.count("reason = 'unknown' AND resolved_at IS NULL") != 2 {
		t.Errorf("exit %d: %s", code, stderr)
	}

	code, stdout, _ := cli(t, s.env(), "operations", "-o", "json")
	var list []dialect.Operation
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || code != exitOK || len(list) != 5 || list[0].Op != "resolve" || !list[0].DryRun ||
		list[3].Op != "retry_now" || !strings.HasPrefix(list[3].Actor, "relay ") || *list[4].Affected != 5 { // the relay's own is that of a new configuration
		t.Errorf("exit %d, %v: %s", code, err, stdout)
	}
	code, stdout, _ = cli(t, s.env(), "operations", "--limit", "1")
	if table := strings.Join(strings.Fields(stdout), " "); code != exitOK || !strings.HasPrefix(table, "ID OP DRY_RUN FILTER ACTOR NOTE ") ||
		!strings.Contains(table, " resolve true ") || !strings.Contains(table, " the receiver has both ") {
		t.Errorf("exit %d: %s", code, stdout)
	}
	const nobody = "00000000-0000-7000-8000-0000000000ff"
	code, stdout, stderr = cli(t, s.env(), "operations", strings.TrimSpace(id), nobody, "-o", "jsonl")
	if code != exitNotFound || strings.Count(stdout, "\n") != 1 || !strings.Contains(stdout, strings.TrimSpace(id)) || !strings.Contains(stderr, nobody) {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	if code, stdout, _ := cli(t, s.env(), "operations", "--open"); code != exitOK || strings.Count(stdout, "\n") != 1 {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

// TestOperatePartly: what somebody has to look at is an exit code of its own.
func TestOperatePartly(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.insert(2, "elsewhere", "order_paid")
	s.fail("order_paid", "rejected")
	s.exec("UPDATE " + s.schema + ".outbox SET unknown_since = now() WHERE seq = 1")
	s.insert(1, "elsewhere", "lost")
	s.fail("lost", "unknown")
	s.exec("UPDATE " + s.schema + ".outbox SET unknown_since = now() WHERE type = 'lost'")
	start(t, s.env(), "run")
	eventually(t, "the relay is alive", func() bool { return s.relays() == 1 })
	code, id, stderr := cli(t, s.env(), "replay", "--type", "lost", "--yes")
	if code != exitOK || stderr != "replay: 1 message; may be left out: 1 may have taken effect already, and whether the receiver still remembers "+
		"the key, only the configuration says: add -c FILE, or look at the receiver\nwhat comes of it: outboxd operations "+id {
		t.Errorf("exit %d: %s", code, stderr)
	}
	config := write(t, t.TempDir(), "outboxd.yaml", `
destinations: {a: {webhook: {url: "http://127.0.0.1:1/", dedupe: 24h}}, b: {webhook: {url: "http://127.0.0.1:1/", dedupe: never}}}
routes: [{match: lost, to: a, ordered: false}, {match: "*", to: b, ordered: false}]
`)
	s.insert(1, "lost", "lost")
	s.fail("lost", "unknown")
	s.exec("UPDATE " + s.schema + ".outbox SET unknown_since = now() WHERE type = 'lost'")
	code, _, stderr = cli(t, s.env(), "replay", "--type", "lost", "--state", "failed", "--dry-run", "-c", config)
	if code != exitOK || !strings.HasPrefix(stderr, "dry run: replay: 1 message (left as they are: 1 unknown)\n") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	code, _, stderr = cli(t, s.env(), "replay", "--type", "order_paid", "--yes", "--wait")
	if code != exitPartly || !strings.Contains(stderr, "applied: 1 message (left as they are: 1 unknown)\n") || !strings.Contains(stderr, "--force") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	code, _, stderr = cli(t, s.env(), "replay", "--type", "order_paid", "--force", "--note", "the receiver has none", "--same-key", "--state", "failed", "--yes", "--wait")
	if code != exitOK || s.count("replays = 1 AND unknown_since IS NULL AND send_id IS NULL AND seq = 1") != 1 {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestOperateMistakes(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.insert(1, "orders", "order_paid")
	id := s.text("SELECT id::text FROM outbox")
	const nobody = "00000000-0000-7000-8000-0000000000ff"
	for args, want := range map[string]string{
		"replay":                                                 "2 outboxd: an empty filter",
		"replay --limit 5 --yes":                                 "2 outboxd: an empty filter",
		"replay --state pending --yes":                           `2 outboxd: replay is not for messages in state "pending"`,
		"replay --state failed --new-key --same-key":             "2 outboxd: --same-key: one of --new-key and --same-key",
		"replay --state failed --until never":                    "2 outboxd: --until: write a time as",
		"replay --state failed --schema-version two":             "2 outboxd: --schema-version: wants a whole number; see outboxd replay --help",
		"replay --state failed --rate fast":                      "2 outboxd: --rate: wants a number; see",
		"resolve --state failed --yes":                           "2 outboxd: resolve wants --note: ",
		"cancel " + id:                                           "2 cancel: 1 message\noutboxd: nobody is there to be asked: add --yes",
		"cancel 7 --yes":                                         "2 outboxd: one of the ids is no UUID",
		"cancel --force " + id:                                   "2 outboxd: unknown flag: --force",
		"cancel " + nobody + " --yes":                            "4 outboxd: no message has such an id",
		"replay --state failed --yes --require-match":            "5 outboxd: replay: no messages: nothing was asked for",
		"replay --state failed --yes":                            "0 replay: no messages: nothing was asked for",
		"replay " + id + " --yes":                                "0 replay: no messages (left as they are: 1 pending): nothing was asked for",
		"retry-now " + id + " --yes":                             "0 retry-now: no messages (left as they are: 1 due): nothing was asked for",
		"replay " + id + " --force --yes":                        "2 outboxd: --force wants --note",
		"correct " + id + " --yes":                               "2 outboxd: correct needs --payload-file for one message, or --jq for many",
		"correct " + id + " --payload-file - --jq .":             "2 outboxd: correct needs --payload-file for one message, or --jq for many",
		"correct --payload-file x --yes":                         "2 outboxd: outboxd correct takes the id of one message",
		"correct " + id + " --payload-file testdata/none":        "2 outboxd: --payload-file: cannot read testdata/none",
		"correct " + id + " --payload-file - --yes":              "2 outboxd: correct wants --note",
		"correct " + nobody + " --yes --payload-file - --note n": "4 outboxd: no message has such an id",
		"correct --jq . --note n --yes":                          "2 outboxd: an empty filter",
		"correct --jq .| --state failed --note n --yes":          "2 outboxd: --jq: ",
		"correct --jq nothing --state failed --note n":           "2 outboxd: --jq: function not defined: nothing/0",
		"correct --jq . --state done --note n --yes":             `2 outboxd: correct is not for messages in state "done"`,
		"correct --jq . --type order_paid --note n --yes":        "0 correct: no messages (left as they are: 1 unchanged): nothing was asked for",
		"correct " + nobody + " --jq . --note n --yes":           "4 outboxd: no message has such an id",
		"pause --yes":                                            "2 outboxd: pause wants one of these: a destination, --routing-key",
		"pause crm --yes":                                        "2 outboxd: pause wants --for, such as --for 30m, or --indefinitely; see outboxd pause --help",
		"pause crm --for -1m --yes":                              "2 outboxd: pause wants --for",
		"pause crm --for 10":                                     "2 outboxd: --for: wants a duration with its unit, such as 500ms, 30s or 5m; see outboxd pause --help",
		"pause crm erp --for 1m --yes":                           "2 outboxd: outboxd pause takes the name of one destination",
		"pause crm --everything --for 1m --yes":                  "2 outboxd: pause wants one of these",
		"pause crm --for 1m --indefinitely --yes":                "2 outboxd: pause wants --for",
		"resume --schema-version 2 --yes":                        "2 outboxd: resume wants one of these",
		"resume crm --schema-version 2 --yes":                    "2 outboxd: --schema-version goes with --type",
		"operations --limit 0":                                   "2 outboxd: --limit wants 1 to 1000",
	} {
		code, stdout, stderr := cli(t, s.env(), strings.Fields(args)...)
		if got := fmt.Sprint(code, " ", stderr); stdout != "" || !strings.Contains(got, want) || !strings.HasPrefix(got, want[:2]) {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
	if got := s.text("SELECT count(*)::text FROM outbox_operation"); got != "0" {
		t.Errorf("%s operations were asked for", got)
	}
}

// TestCorrect: another payload, which the destination gets, and the old one is kept.
func TestCorrect(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.insert(1, "orders", "order_paid")
	s.fail("order_paid", "rejected")
	id := s.text("SELECT id::text FROM outbox")
	stdout, _, _ := start(t, s.env(), "run")
	eventually(t, "the relay is alive", func() bool { return s.relays() == 1 })
	code, _, stderr := cliWith(t, `{"n":"ä"}`, s.env(), "correct", id, "--payload-file", "-", "--note", "an umlaut", "--yes", "--wait")
	if code != exitOK || !strings.Contains(stderr, "applied: 1 message\n") {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	eventually(t, "it is sent", func() bool { return s.count("state = 'done' AND send_id IS NOT NULL") == 1 })
	if !strings.Contains(stdout.String(), `"payload":"{\"n\":\"ä\"}"`) {
		t.Errorf("sent is %s", stdout)
	}
	if got := s.text("SELECT old_payload FROM outbox_correction"); got != `{"n":1}` {
		t.Errorf("the old payload is %s", got)
	}
}

// TestDryRunWithoutRelay: nobody is there to count, so that nothing is waited for.
func TestDryRunWithoutRelay(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.insert(1, "orders", "order_paid")
	code, _, stderr := cli(t, s.env(), "cancel", "--type", "order_paid", "--dry-run")
	if code != exitOK || !strings.HasPrefix(stderr, "dry run: cancel: 1 message\nno relay is alive: it is applied as soon as one runs\nwhat comes of it: outboxd operations ") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// TestCancelPartly: what an id does not name is told, and no flag is advised that cancel does not have.
func TestCancelPartly(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.insert(1, "elsewhere", "order_paid")
	start(t, s.env(), "run")
	eventually(t, "the relay is alive", func() bool { return s.relays() == 1 })
	code, _, stderr := cli(t, s.env(), "cancel", s.text("SELECT id::text FROM outbox"), "00000000-0000-7000-8000-0000000000ff", "--yes", "--wait")
	if code != exitPartly || !strings.HasSuffix(stderr, "outboxd: left out: 1 named by an id that no message has which cancel is for\n") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// login makes a login role that has one of roles.sql, and gives the environment of its commands.
func (s *server) login(role string) lookup {
	s.t.Helper()
	login := s.schema + "_" + role
	s.exec("CREATE ROLE " + login + " LOGIN PASSWORD 'x'; GRANT outbox_" + role + " TO " + login)
	s.t.Cleanup(func() { s.exec("DROP ROLE " + login) })
	return s.env(envDatabase + "=" + s.as(login, "x"))
}

// TestOperateAsRoles: the shipped roles suffice for the commands, and an operator writes no payload.
func TestOperateAsRoles(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	_, script, _ := cli(t, s.env(), "migrate", "print", "--script", "roles", "--schema", s.schema)
	s.exec(script)
	s.insert(2, "elsewhere", "order_paid")
	s.fail("order_paid", "rejected")
	id := s.text("SELECT id::text FROM outbox LIMIT 1")
	reader := s.login("reader")
	for args, want := range map[string]string{
		"get " + id + " --payload":    "outboxd get needs the role outbox_corrector",
		"replay --state failed --yes": "outboxd replay needs the role outbox_operator",
		"enqueue --type order_paid":   "outboxd enqueue needs the role outbox_application",
	} {
		code, _, stderr := cli(t, reader, strings.Fields(args)...)
		if code != exitNotAllowed || !strings.HasSuffix(stderr, "; "+want+"\n") {
			t.Errorf("%s as reader: exit %d: %s", args, code, stderr)
		}
	}
	for role, code := range map[string]int{"operator": exitNotAllowed, "corrector": exitOK} {
		env := s.login(role)
		for _, args := range []string{"replay --state failed --yes", "pause crm --for 1m --yes", "operations", "status"} {
			if code, _, stderr := cli(t, env, strings.Fields(args)...); code != exitOK {
				t.Errorf("%s as %s: exit %d: %s", args, role, code, stderr)
			}
		}
		if got, _, stderr := cliWith(t, "{}", env, "correct", id, "--payload-file", "-", "--note", "empty", "--yes"); got != code {
			t.Errorf("correct as %s: exit %d, want %d: %s", role, got, code, stderr)
		}
	}
}

// TestDocumentedOrder holds docs/operations.md to what an operation can say, and to what it can leave out.
func TestDocumentedOrder(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{
		string(relay.SkipLate), string(relay.SkipResolved), string(relay.SkipChanged), string(relay.SkipUnknown), string(relay.SkipDue), string(relay.SkipDelayed),
		string(relay.SkipLocked), string(relay.SkipRefused), string(relay.SkipUnmatched), string(relay.SkipNotPaused),
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[relay.Order]()) {
		if name, _, tagged := strings.Cut(field.Tag.Get("json"), ","); tagged && name != "-" {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("docs/operations.md does not have %s", name)
		}
	}
}
