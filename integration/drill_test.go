package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Programs that charge: each effect is a line of a file, and its number the answer. One keeps its answers under the key.
const (
	chargesTwice = `echo x >> effects; echo "ch_$(wc -l < effects | tr -d ' ')"`
	chargesOnce  = `mkdir -p keys; if [ -f "keys/$OUTBOX_ID" ]; then cat "keys/$OUTBOX_ID"; else ` + chargesTwice + ` > "keys/$OUTBOX_ID"; cat "keys/$OUTBOX_ID"; fi`
)

// TestDrillOfPrograms holds on each engine that a drill finds the program that does the work twice and passes the one that
// does not, with no more rights than a corrector's; that evidence tells of it to a reader; and that compat judges what is there.
func TestDrillOfPrograms(t *testing.T) {
	onEngines(t, drillOfPrograms)
}

func drillOfPrograms(t *testing.T, e engine) {
	d, p := e.withRoles(t), newPrograms(t)
	as := func(role string) []string {
		if e.proxy == nil {
			return d.env() // SQLite has no roles
		}
		return []string{"OUTBOXD_DATABASE_URL=" + d.as(t, role)}
	}
	for _, folder := range []string{"once", "twice"} {
		if err := os.Mkdir(p.path(folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	config := configFile(t, fmt.Sprintf(`
relay: {name: a, lease: 10s}
http: {listen: "off"}
destinations:
  once: {program: {command: [/bin/sh, -c, %q], dir: %q, dedupe: 24h}, width: 1}
  twice: {program: {command: [/bin/sh, -c, %q], dir: %q, dedupe: 24h}, width: 1}
routes:
  - {match: once, to: once, ordered: false}
  - {match: twice, to: twice, ordered: false}
`, chargesOnce, p.path("once"), chargesTwice, p.path("twice")))
	d.insert(t, 3, "once")
	d.insert(t, 3, "twice")
	if _, stderr, code := outboxd(t, d.env(), "run", "--once", "--config", config); code != 0 {
		t.Fatalf("run: exit code %d\n%s", code, stderr)
	}
	before := d.texts(t, "SELECT state FROM outbox ORDER BY seq")
	for destination, want := range map[string]struct {
		code int
		line string
	}{
		"once":  {0, "sent again 3 · agree 3 · differ 0 · unanswered 0"},
		"twice": {1, "sent again 3 · agree 0 · differ 3 · unanswered 0"},
	} {
		_, stderr, code := outboxd(t, as("corrector"), "drill", "--config", config, "--destination", destination, "--yes")
		if code != want.code || !strings.Contains(stderr, want.line) {
			t.Errorf("%s: exit code %d, want %d:\n%s", destination, code, want.code, stderr)
		}
	}
	if effects := len(p.lines(t, "once/effects")); effects != 3 {
		t.Errorf("once: %d effects, want 3", effects)
	}
	if after := d.texts(t, "SELECT state FROM outbox ORDER BY seq"); strings.Join(after, " ") != strings.Join(before, " ") {
		t.Errorf("the messages were %v, and are %v", before, after)
	}
	stdout, stderr, code := outboxd(t, as("reader"), "evidence", "--config", config, "-o", "json")
	var page struct{ Topics []any }
	if err := json.Unmarshal([]byte(stdout), &page); err != nil || code != 0 || len(page.Topics) != 6 || !strings.Contains(stdout, "agree 3 · differ 0") || !strings.Contains(stdout, "agree 0 · differ 3") {
		t.Errorf("evidence: exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	if _, stderr, code := outboxd(t, as("reader"), "compat", "--config", config); code != 0 || !strings.Contains(stderr, "accepts all 2 kinds") {
		t.Errorf("compat: exit code %d\n%s", code, stderr)
	}
	d.exec(t, "INSERT INTO outbox (type, schema_version) VALUES ('unrouted', 7)")
	if stdout, _, code := outboxd(t, as("reader"), "compat", "--config", config); code != 1 || !strings.Contains(stdout, "no route for the routing key") {
		t.Errorf("compat of a message without a route: exit code %d\n%s", code, stdout)
	}
}
