package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
)

// sqliteOutbox is an environment that leads to a new SQLite file with the tables of outboxd.
func sqliteOutbox(t *testing.T, pairs ...string) lookup {
	t.Helper()
	env := environment(append(pairs, envDatabase+"=sqlite:"+filepath.Join(t.TempDir(), "outbox.db"), "OUTBOXD_LISTEN=off", "OUTBOXD_LOG_FORMAT=json")...)
	if code, _, stderr := cli(t, env, "migrate", "up"); code != exitOK {
		t.Fatalf("migrate up: exit %d: %s", code, stderr)
	}
	return env
}

// loadedOf is a configuration as its file says it.
func loadedOf(t *testing.T, text string) *loaded {
	t.Helper()
	file := filepath.Join(t.TempDir(), "outboxd.yaml")
	writeTo(t, file, []byte(text))
	l, err := load(file, environment())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAccepts(t *testing.T) {
	t.Parallel()
	l := loadedOf(t, `
destinations:
  out: {stdout: {}}
  mails: {kafka: {brokers: ["h:9092"], topic: t}}
routes:
  - match: orders
    to: out
    versions: [1, 2]
    types:
      order_paid: {versions: [2, 3]}
      order_*: {versions: []}
      order_sent: {budget: 3}
  - {match: "mail*", to: mails}
`)
	for _, c := range []struct {
		key, kind string
		version   int
		want      string // with a "no: " in front
	}{
		{"orders", "charge", 1, "goes to out"},
		{"orders", "charge", 3, "no: routes[0] accepts versions 1 and 2"},
		{"orders", "order_paid", 1, "no: routes[0].types.order_paid accepts versions 2 and 3"},
		{"orders", "order_paid", 3, "goes to out"},
		{"orders", "order_lost", 9, "goes to out"},
		{"orders", "order_sent", 3, "no: routes[0].types.order_sent accepts versions 1 and 2"},
		{"mail.welcome", "welcome", 7, "goes to mails"},
		{"order", "charge", 1, "no: no route for the routing key"},
	} {
		accepted, why := l.accepts(dialect.Kind{RoutingKey: c.key, Type: c.kind, SchemaVersion: c.version})
		if !accepted {
			why = "no: " + why
		}
		if why != c.want {
			t.Errorf("%s %s %d: %s, want %s", c.key, c.kind, c.version, why, c.want)
		}
	}
}

func TestReach(t *testing.T) {
	t.Parallel()
	back := *at(0)
	for want, h := range map[string]dialect.Horizon{
		"only the ends of the queue of pending messages of routing key orders were looked at, 20000 messages":           {State: "pending", RoutingKey: "orders", Messages: 20000, Back: back},
		"of failed messages only the last 10000 were looked at, back to " + back.Format(timeForm):                       {State: "failed", Messages: 10000, Back: back},
		"for done messages only the last 100000 messages of all were looked at, back to " + back.UTC().Format(timeForm): {State: "done", Messages: 100000, Back: back},
	} {
		if got := reach(h); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestCompat holds that a configuration which takes all that is there passes, and that one version, waiting or done, stops
// the one which does not.
func TestCompat(t *testing.T) {
	t.Parallel()
	env := sqliteOutbox(t)
	write := func(name, routes string) string {
		file := filepath.Join(t.TempDir(), name)
		writeTo(t, file, []byte("destinations:\n  out: {stdout: {}}\nroutes:\n"+routes))
		return file
	}
	old, fresh := write("old.yaml", `  - {match: orders, to: out}`), write("new.yaml", `  - {match: orders, to: out, versions: [2]}`)
	if code, stdout, stderr := cli(t, env, "compat", "--config", fresh, "-o", "json"); code != exitOK || !strings.Contains(stdout, `"kinds": []`) {
		t.Errorf("an empty outbox: exit %d: %s%s", code, stdout, stderr)
	}
	enqueue := func(version int) {
		if code, _, stderr := cli(t, env, "enqueue", "--type", "paid", "--aggregatetype", "orders", "--schema-version", fmt.Sprint(version)); code != exitOK {
			t.Fatalf("enqueue: exit %d: %s", code, stderr)
		}
	}
	enqueue(1)
	if code, _, stderr := cli(t, env, "run", "--once", "--config", old); code != exitOK {
		t.Fatalf("run: exit %d: %s", code, stderr)
	}
	enqueue(2)
	enqueue(2)
	if code, _, stderr := cli(t, env, "compat", "--config", old); code != exitOK || stderr != "this configuration accepts all 2 kinds of message that are there\n" {
		t.Errorf("the old configuration: exit %d: %s", code, stderr)
	}
	code, stdout, stderr := cli(t, env, "compat", "--config", fresh)
	if lines := strings.Split(stdout, "\n"); code != exitUnexpected || !strings.Contains(stderr, "does not accept 1 of 2 kinds") ||
		!slices.Equal(strings.Fields(lines[1])[:6], []string{"NO", "orders", "paid", "1", "done", "1"}) ||
		!slices.Equal(strings.Fields(lines[2])[:6], []string{"yes", "orders", "paid", "2", "pending", "2"}) {
		t.Errorf("the new configuration: exit %d: %s%s", code, stdout, stderr)
	}
	code, stdout, _ = cli(t, env, "compat", "--config", fresh, "-o", "json")
	var got compatibility
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitUnexpected || got.Accepted || len(got.Kinds) != 2 || got.Kinds[0].Accepted || got.Kinds[0].SchemaVersion != 1 {
		t.Errorf("exit %d, %v: %s", code, err, stdout)
	}
	empty := filepath.Join(t.TempDir(), "empty.yaml")
	writeTo(t, empty, []byte("log: {level: info}\n"))
	if code, _, _ := cli(t, env, "compat", "--config", empty); code != exitConfiguration {
		t.Errorf("a configuration without routes: exit %d", code)
	}
}
