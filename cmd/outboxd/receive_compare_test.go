package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
)

// executed is an outbox on SQLite whose charges go to a receiver, and all else to the screen.
type executed struct {
	t   *testing.T
	dir string
	env lookup
}

func newExecuted(t *testing.T) *executed {
	t.Helper()
	e := &executed{t: t, dir: t.TempDir()}
	e.env = environment(envDatabase+"=sqlite://"+filepath.ToSlash(filepath.Join(e.dir, "shop.db")), "OUTBOXD_LISTEN=off")
	e.command("migrate", "up")
	return e
}

// command runs one command that has to end well, and gives what it printed.
func (e *executed) command(args ...string) string {
	e.t.Helper()
	code, stdout, stderr := cli(e.t, e.env, args...)
	if code != exitOK {
		e.t.Fatalf("%q: exit %d: %s", args, code, stderr)
	}
	return strings.TrimSpace(stdout)
}

func (e *executed) config(url string) string {
	e.t.Helper()
	return write(e.t, e.t.TempDir(), "outboxd.yaml", fmt.Sprintf(`
destinations:
  billing: {webhook: {url: %q, dedupe: 24h}}
  screen: {stdout: {}}
routes:
  - {match: charges, to: billing, ordered: false, base: 10ms}
  - {match: "*", to: screen}
`, url))
}

// receiver compares with the charges; its own address is not in its configuration.
func (e *executed) receiver(args ...string) *receiving {
	e.t.Helper()
	return newReceiving(e.t, e.env, append([]string{"--db", "--to", "billing", "-c", e.config("http://127.0.0.1/")}, args...)...)
}

// relayTo runs a relay until so many messages are done.
func (e *executed) relayTo(url string, done int, meanwhile func(config string)) {
	e.t.Helper()
	file := e.config(url)
	_, _, stop := start(e.t, e.env, "run", "-c", file)
	meanwhile(file)
	eventually(e.t, "all is done", func() bool {
		return strings.Count(e.command("list", "--state", "done", "-o", "jsonl"), "\n")+1 == done
	})
	stop()
}

// TestReceiveFromRelay lets a relay execute commands at a receiver that fails at first, and compares with the outbox. A
// second receiver sees only what is replayed under a new key.
func TestReceiveFromRelay(t *testing.T) {
	t.Parallel()
	e := newExecuted(t)
	var ids []string
	for i := range 3 {
		ids = append(ids, e.command("enqueue", "--aggregatetype", "charges", "--type", "charge_order", "--data", fmt.Sprint(i)))
	}
	e.command("enqueue", "--type", "audit")
	first := e.receiver("--fail", "2", "--status", "500")
	e.relayTo(first.url, 4, func(string) {})
	if code, balance := first.ended(); code != exitOK || !strings.Contains(balance, "effects 3 · repeats dropped 0 · failed on demand 2") {
		t.Errorf("exit %d: %s: %s", code, balance, first.stderr.String())
	}

	second := e.receiver()
	e.relayTo(second.url, 4, func(file string) {
		e.command("replay", ids[1], "--state", "done", "--new-key", "--note", "again", "--yes", "--wait", "-c", file)
	})
	eventually(t, "it comes again", func() bool { return strings.Contains(second.stdout.String(), "effect") })
	code, balance := second.ended()
	out := second.stdout.String()
	if code != exitUnexpected || strings.Contains(out, "missing  "+ids[1]) || !strings.Contains(second.stderr.String(), "2 messages had no effect here") {
		t.Errorf("exit %d: %s: %s", code, out, second.stderr.String())
	}
	if want := "missing  " + ids[2] + "  charge_order  done"; !strings.Contains(out, want) || balance == "" {
		t.Errorf("%q is not in %s", want, out)
	}
}

// TestMissingIsWhatIsExpected holds which messages need an effect.
func TestMissingIsWhatIsExpected(t *testing.T) {
	t.Parallel()
	routes := []routeConfig{{Match: "charges", To: "billing"}, {Match: "*", To: "screen"}}
	for _, c := range []struct {
		to   string
		m    dialect.Listed
		want bool
	}{
		{"billing", dialect.Listed{RoutingKey: "charges"}, true},
		{"billing", dialect.Listed{RoutingKey: "charges", ResolvedAt: &dialect.Time{}}, false},
		{"billing", dialect.Listed{RoutingKey: "audit"}, false},
		{"", dialect.Listed{RoutingKey: "audit"}, true},
	} {
		if got := (&expectation{routes: routes, to: c.to}).wants(c.m); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if !(&expectation{}).wants(dialect.Listed{RoutingKey: "audit"}) || (&expectation{to: "billing"}).wants(dialect.Listed{RoutingKey: "audit"}) {
		t.Error("without a route, only a comparison with all messages counts it")
	}
}
