package main

import (
	"strings"
	"testing"
)

// TestAudit asks the same of two engines, in each format.
func TestAudit(t *testing.T) {
	t.Parallel()
	postgres := migrated(t).env()
	sqlite := environment(envDatabase + "=sqlite:" + t.TempDir() + "/shop.db")
	if code, _, stderr := cli(t, sqlite, "migrate", "up"); code != exitOK {
		t.Fatalf("migrate up: exit %d: %s", code, stderr)
	}
	for engine, env := range map[string]lookup{"PostgreSQL": postgres, "SQLite": sqlite} {
		long := strings.Repeat("long", 20)
		if code, _, stderr := cli(t, env, "enqueue", "--type", long, "--delay", "1h", "--schema-version", "3"); code != exitOK {
			t.Fatalf("%s: enqueue: exit %d: %s", engine, code, stderr)
		}
		for args, want := range map[string]string{
			"versions":             "ROUTING_KEY  TYPE  SCHEMA_VERSION  WAITING  WAITING_SINCE  NO_POLICY LONG LONG 3 1 TIME 0",
			"versions -o jsonl":    `{"routing_key":"WHOLE","type":"WHOLE","schema_version":3,"waiting":1,"waiting_since":"TIME","no_policy":0}`,
			"stuck":                "ID  ROUTING_KEY  TYPE  STATE  STUCK_SINCE  STUCK_S  WHY  ATTEMPTS  LAPSES  ERROR_CLASS  LAST_ERROR",
			"stuck -o json":        "[]",
			"attempts":             "MESSAGE_ID  LIFE  ATTEMPT  STARTED_AT  DURATION_S  RELAY  OUTCOME  STATUS  ERROR_CLASS  ERROR  STATE  REASON",
			"attempts -o jsonl":    "",
			"throughput -o jsonl ": `{"minute":"TIME","inserted":1,"done":0,"failed":0,"median_to_done_s":null,"p99_to_done_s":null}`,
		} {
			code, stdout, stderr := cli(t, env, append([]string{"audit"}, strings.Fields(args)...)...)
			got := times(strings.ReplaceAll(strings.ReplaceAll(stdout, long, "WHOLE"), long[:cellRunes-1]+"…", "LONG"))
			if code != exitOK || strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
				t.Errorf("%s: audit %s: exit %d, %s: %s", engine, args, code, got, stderr)
			}
		}
	}
}

// times puts TIME in place of each text that begins with a year and ends with Z.
func times(text string) string {
	fields := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n\",", r) })
	for _, f := range fields {
		if strings.HasPrefix(f, "20") && strings.HasSuffix(f, "Z") {
			text = strings.ReplaceAll(text, f, "TIME")
		}
	}
	return text
}

// TestAuditPrints holds that the list and the SQL need no database that answers.
func TestAuditPrints(t *testing.T) {
	t.Parallel()
	code, list, stderr := cli(t, environment(), "audit")
	if code != exitOK || !strings.Contains(list, "\nversions    Which versions of which types wait") {
		t.Errorf("exit %d, %s: %s", code, list, stderr)
	}
	for url, want := range map[string]string{
		"postgres://nobody@127.0.0.1:1/none?sslmode=disable": `FROM "shop".outbox_attempt`,
		"mysql://nobody@127.0.0.1:1/none":                    "FROM `shop`.outbox_attempt",
	} {
		env := environment(envDatabase+"="+url, "OUTBOXD_DATABASE_SCHEMA=shop")
		if code, text, stderr := cli(t, env, "audit", "attempts", "--print"); code != exitOK || !strings.HasPrefix(text, "-- What") || !strings.Contains(text, want) {
			t.Errorf("%s: exit %d, %s: %s", url, code, text, stderr)
		}
	}
}

func TestAuditMistakes(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for args, want := range map[string]struct {
		code   int
		stderr string
	}{
		"stuck due":       {exitUsage, "outboxd: outboxd audit takes the name of one query, or none; see outboxd audit --help\n"},
		"none":            {exitUsage, `outboxd: no audit "none": attempts, breakers, `},
		"stuck --id 7":    {exitUsage, "outboxd: --id is for audit attempts: the others tell of all messages\n"},
		"attempts --id 7": {exitNotFound, "outboxd: no message has the id \"7\": it is not a UUID\n"},
		"attempts --id 00000000-0000-7000-8000-0000000000ff": {exitNotFound, "outboxd: no message has the id 00000000-0000-7000-8000-0000000000ff\n"},
		"stuck -o xml": {exitUsage, "outboxd: -o wants table, json or jsonl\n"},
	} {
		code, stdout, stderr := cli(t, s.env(), append([]string{"audit"}, strings.Fields(args)...)...)
		if code != want.code || stdout != "" || !strings.HasPrefix(stderr, want.stderr) {
			t.Errorf("%s: exit %d: %s", args, code, stderr)
		}
	}
	s.insert(1, "orders", "order_paid")
	id := s.text("SELECT id::text FROM outbox")
	for args, want := range map[string]string{"audit attempts --id " + id: noSend, "get --attempts " + id: "nothing of it went out yet"} {
		if code, stdout, stderr := cli(t, s.env(), strings.Fields(args)...); code != exitOK || stdout == "" || stderr != want+"\n" {
			t.Errorf("%s: exit %d, %s: %s", args, code, stdout, stderr)
		}
	}
	empty := newServer(t)
	if code, _, stderr := cli(t, empty.env(), "audit", "stuck"); code != exitDatabase || !strings.Contains(stderr, "run outboxd migrate up") {
		t.Errorf("no tables: exit %d: %s", code, stderr)
	}
}
