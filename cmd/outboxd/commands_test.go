package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestEnqueueListGet walks one message through the commands.
func TestEnqueueListGet(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	code, stdout, stderr := cliWith(t, "\x00\xffbytes", s.env(), "enqueue", "--type", "order_paid", "--aggregatetype", "orders",
		"--aggregateid", "42", "--data", "-", "--header", "tenant=7", "--header", "note=a=b", "--delay", "1h", "--schema-version", "3")
	id := strings.TrimSpace(stdout)
	if code != exitOK || len(id) != 36 {
		t.Fatalf("exit %d, %q: %s", code, stdout, stderr)
	}
	code, stdout, _ = cli(t, s.env(), "get", id, "--payload", "--attempts", "-o", "json")
	var got []struct {
		AggregateID string `json:"aggregateid"`
		Version     int    `json:"schema_version"`
		Headers     string `json:"headers"`
		State       string `json:"state"`
		Payload     []byte `json:"payload_base64"`
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitOK || len(got) != 1 {
		t.Fatalf("exit %d, %v: %s", code, err, stdout)
	}
	if g := got[0]; g.AggregateID != "42" || g.Version != 3 || g.State != "pending" || string(g.Payload) != "\x00\xffbytes" ||
		!strings.Contains(g.Headers, `"note":"a=b"`) {
		t.Errorf("%+v", g)
	}
	if code, stdout, _ := cli(t, s.env(), "list", "--state", "pending", "--type", "order_paid", "--routing-key", "orders", "-o", "jsonl"); code != exitOK || strings.Count(stdout, "\n") != 1 || !strings.Contains(stdout, id) {
		t.Errorf("exit %d: %s", code, stdout)
	}
	code, stdout, _ = cli(t, s.env(), "list")
	if table := strings.Fields(times(stdout)); code != exitOK || !slices.Equal(table[11:], []string{id, "pending", "orders", "order_paid", "42", "0", "TIME", "TIME", "-", "-", "-"}) {
		t.Errorf("exit %d: %s", code, stdout)
	}
	if code, _, stderr := cli(t, s.env(), "enqueue", "--type", "x", "--id", id); code != exitNotAllowed || !strings.Contains(stderr, id) {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// TestListSince holds that --since takes the time that a table shows, a date and an age; each finds the message or not.
func TestListSince(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.insert(1, "orders", "order_paid")
	_, stdout, _ := cli(t, s.env(), "list")
	created := strings.Fields(stdout)[17]
	if len(created) != len("2026-01-31T15:04:05.000Z") {
		t.Fatalf("%q is not the form of a time: %s", created, stdout)
	}
	for args, want := range map[string]int{
		"--since " + created: 1, "--until " + created: 0, "--since 1h": 1, "--until 1h": 0, "--since 2026-01-31": 1, "--until 2026-01-31": 0,
	} {
		code, stdout, stderr := cli(t, s.env(), append([]string{"list", "-o", "jsonl"}, strings.Fields(args)...)...)
		if code != exitOK || strings.Count(stdout, "\n") != want {
			t.Errorf("%s: exit %d, %s: %s", args, code, stdout, stderr)
		}
	}
}

func TestEnqueueMistakes(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for args, want := range map[string]string{
		"":                                   "outboxd: enqueue needs --type; see outboxd enqueue --help",
		"--type x --header a":                "outboxd: --header wants name=value, each name once",
		"--type x --header a=1 --header a=2": "outboxd: --header wants name=value, each name once",
		"--type x --data @testdata/none":     "outboxd: --data: cannot read testdata/none: no such file or directory",
		"--type x --id 7":                    "outboxd: id: ",
		"--type x --schema-version -1":       "outboxd: schema_version: ",
		"--type x --delay 10":                "outboxd: --delay: wants a duration with its unit",
	} {
		code, stdout, stderr := cli(t, s.env(), append([]string{"enqueue"}, strings.Fields(args)...)...)
		if code != exitUsage || stdout != "" || !strings.HasPrefix(stderr, want) {
			t.Errorf("%s: exit %d: %s", args, code, stderr)
		}
	}
	if s.count("true") != 0 {
		t.Error("something was written")
	}
}

func TestEnqueueFile(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	file := write(t, t.TempDir(), "body.json", "{\"a\": 1}\n")
	for data, want := range map[string]string{"@" + file: "{\"a\": 1}\n", "text": "text"} {
		_, stdout, _ := cli(t, s.env(), "enqueue", "--type", "x", "--data", data)
		_, stdout, _ = cli(t, s.env(), "get", strings.TrimSpace(stdout), "--payload", "-o", "jsonl")
		var got struct{ Payload string }
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || got.Payload != want {
			t.Errorf("%s: %v: %q", data, err, got.Payload)
		}
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.insert(25, "orders", "order_paid")
	seen, cursor := map[string]bool{}, ""
	for pages := 0; pages == 0 || cursor != ""; pages++ {
		code, stdout, stderr := cli(t, s.env(), "list", "--limit", "10", "--cursor", cursor, "-o", "jsonl")
		if code != exitOK || pages > 3 {
			t.Fatalf("page %d, exit %d: %s", pages, code, stderr)
		}
		for line := range strings.Lines(stdout) {
			seen[line] = true
		}
		_, cursor, _ = strings.Cut(strings.TrimSpace(stderr), "--cursor ")
	}
	if len(seen) != 25 {
		t.Errorf("%d of 25 messages", len(seen))
	}
}

// TestListOfFewAmongMany holds that a filter which fits few messages goes on behind what one look reads.
func TestListOfFewAmongMany(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for range 2 {
		s.insert(3, "orders", "rare")
		s.insert(11000, "orders", "order_paid")
	}
	code, stdout, stderr := cli(t, s.env(), "list", "--type", "rare", "--limit", "4", "-o", "jsonl")
	if code != exitOK || strings.Count(stdout, "\n") != 4 || !strings.Contains(stderr, "--cursor ") {
		t.Errorf("exit %d, %s: %s", code, stdout, stderr)
	}
}

func TestEmptyLists(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for args, want := range map[string]string{"-o json": "[]\n", "-o jsonl": "", "-o table": "ID  STATE  ROUTING_KEY  TYPE  KEY  ATTEMPTS  CREATED_AT  DUE_AT  REASON  ERROR_CLASS  RESULT\n"} {
		if code, stdout, stderr := cli(t, s.env(), append([]string{"list"}, strings.Fields(args)...)...); code != exitOK || stdout != want {
			t.Errorf("%s: exit %d, %q: %s", args, code, stdout, stderr)
		}
	}
	const none = "0190163d-8694-739b-aea5-966c26f8ad91"
	code, stdout, stderr := cli(t, s.env(), "get", none, "-o", "json")
	if code != exitNotFound || stdout != "[]\n" || lastLine(stderr) != "outboxd: no message has the id "+none {
		t.Errorf("exit %d, %q: %s", code, stdout, stderr)
	}
}

func TestMissingTables(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, args := range []string{"list", "status", "get 0190163d-8694-739b-aea5-966c26f8ad91", "enqueue --type x", "migrate status"} {
		code, _, stderr := cli(t, s.env(), strings.Fields(args)...)
		if code != exitDatabase || !strings.Contains(stderr, "run outboxd migrate up") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d: %s", args, code, stderr)
		}
	}
}

// TestPrintedMigration holds that what is printed makes the tables when somebody else runs it.
func TestPrintedMigration(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	code, text, stderr := cli(t, environment(), "migrate", "print", "--schema", s.schema)
	if code != exitOK {
		t.Fatal(stderr)
	}
	s.exec(text)
	if code, stdout, stderr := cli(t, s.env(), "migrate", "status"); code != exitOK || !strings.Contains(stdout, "current") {
		t.Errorf("exit %d, %s: %s", code, stdout, stderr)
	}
	code, text, _ = cli(t, environment(), "migrate", "print", "--script", "roles")
	if code != exitOK || !strings.Contains(text, "GRANT") {
		t.Errorf("exit %d: %.100s", code, text)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.insert(2, "invoices", "invoice")
	s.exec("INSERT INTO " + s.schema + ".outbox (type, due_at, state, failed_at, reason) VALUES ('order_paid', NULL, 'failed', now(), 'exhausted')")
	code, stdout, stderr := cli(t, s.env(), "status")
	for _, want := range []string{
		"! no relay is alive: nothing is sent until one is started with outboxd run\n",
		"! 2 messages of routing key invoices have no route: add one with that match to routes, and reload the relays\n",
		"! 1 message failed and waits for a person (1 exhausted): see outboxd errors, and outboxd list --unresolved\n",
	} {
		if code != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("exit %d, %q misses %q: %s", code, stdout, want, stderr)
		}
	}
	s.exec("INSERT INTO " + s.schema + ".outbox (type, due_at, state, failed_at, resolved_at, reason) VALUES ('mail', NULL, 'failed', now(), now(), 'expired')")
	code, stdout, stderr = cli(t, s.env(), "list", "--unresolved", "-o", "jsonl")
	if code != exitOK || strings.Count(stdout, "\n") != 1 || !strings.Contains(stdout, `"resolved_at":null,"reason":"exhausted"`) {
		t.Errorf("exit %d, %s: %s", code, stdout, stderr)
	}
	if code, _, stderr := cli(t, s.env(), "list", "--unresolved", "--state", "done"); code != exitUsage {
		t.Errorf("exit %d: %s", code, stderr)
	}
	code, stdout, stderr = cli(t, s.env(), "status", "-o", "json")
	var got struct {
		Problems []string
		Waiting  []struct {
			Messages int
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitOK || len(got.Problems) != 3 || got.Waiting[0].Messages != 2 {
		t.Errorf("exit %d, %v, %+v: %s", code, err, got, stderr)
	}
}

// TestStatusOfALivingRelay holds that nothing is wrong where nothing is.
func TestStatusOfALivingRelay(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	_, _, stop := start(t, s.env(), "run")
	eventually(t, "all is well", func() bool {
		_, stdout, _ := cli(t, s.env(), "status")
		return strings.HasPrefix(stdout, "All is well.\n\nRELAY")
	})
	if code := stop(); code != exitOK {
		t.Errorf("exit %d", code)
	}
}
