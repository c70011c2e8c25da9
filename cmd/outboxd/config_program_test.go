package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	programsink "github.com/outboxd/outboxd/relay/sink/program"
)

// TestProgram_WholeConfiguration holds that each key reaches its field, and that none is forgotten.
func TestProgram_WholeConfiguration(t *testing.T) {
	t.Parallel()
	l, err := loadText(t, `
destinations:
  charges:
    program:
      command: [/usr/local/bin/charge, --live]
      dir: /var/lib/charge
      env: [API_KEY, NOT_SET]
      dedupe: 24h
      grace: 3s
      outcomes: {3: fail, "10": {retry: 5}}
routes: [{match: a, to: charges, ordered: false}]
`)
	if err != nil {
		t.Fatal(err)
	}
	got := l.config.Destinations["charges"].Program.sink(l.config.Relay.Lease, environment("API_KEY=x", "OTHER=y"))
	want := programsink.Config{
		Command: []string{"/usr/local/bin/charge", "--live"}, Dir: "/var/lib/charge", Env: map[string]string{"API_KEY": "x"},
		Grace: 3 * time.Second, CutOff: programsink.DefaultCutOff, Self: "/proc/self/exe",
		Outcomes: map[string]relay.Rule{"3": {Kind: relay.KindFail}, "10": {Kind: relay.KindRetry, Limit: 5}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if n := reflect.ValueOf(want); n.NumField() != 7 {
		t.Errorf("the sink has %d settings, and this test knows 7", n.NumField())
	}
}

// TestProgram_Destination holds what the engine is told of a program: width and memory, and time-outs with the grace behind
// them, which is short under a short lease.
func TestProgram_Destination(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		relay, program, rest, route string
		want                        relay.Destination
		route0, typed               time.Duration
	}{
		"defaults": {
			program: "dedupe: 24h", want: relay.Destination{Width: 2, Shared: true, Dedupe: relay.Dedupe{Window: 24 * time.Hour}},
			route0: 65 * time.Second, typed: 65 * time.Second,
		},
		"of their own": {
			program: "dedupe: never, grace: 2s", rest: ", width: 5, rate: 2/s, timeout: 20s", route: ", types: {x: {timeout: 7s}}",
			want:   relay.Destination{Width: 5, Rate: 2, Shared: true, Dedupe: relay.Dedupe{Never: true}},
			route0: 22 * time.Second, typed: 9 * time.Second,
		},
		"a short lease": {
			relay: "relay: {lease: 2s}\n", program: "dedupe: 24h", rest: ", timeout: 1s",
			want:   relay.Destination{Width: 2, Shared: true, Dedupe: relay.Dedupe{Window: 24 * time.Hour}},
			route0: 1500 * time.Millisecond, typed: 1500 * time.Millisecond,
		},
	} {
		l, err := loadText(t, fmt.Sprintf("%sdestinations: {a: {program: {command: [/bin/true], %s}%s}}\nroutes: [{match: a, to: a, ordered: false%s}]\n",
			c.relay, c.program, c.rest, c.route))
		if err != nil {
			t.Fatal(err)
		}
		rc, err := buildRelay(l, parts{env: environment(), log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		got := rc.Destinations[0]
		if got.Width != c.want.Width || got.Rate != c.want.Rate || got.Shared != c.want.Shared || got.Dedupe != c.want.Dedupe || got.PerKey {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		r := rc.Routes[0]
		typed, own := r.Types["x"]
		if !own {
			typed = r.Policy
		}
		if r.Policy.Timeout != c.route0 || typed.Timeout != c.typed {
			t.Errorf("%s: time-outs %s and %s, want %s and %s", name, r.Policy.Timeout, typed.Timeout, c.route0, c.typed)
		}
		if err := closeSinks(rc); err != nil {
			t.Error(err)
		}
	}
}

func TestProgram_Warnings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rest, route, want string }{
		"the defaults":                  {},
		"a short memory":                {rest: "dedupe: 1h", want: "routes[0]: its tries can go on for 8h28m, longer than the dedupe of its destination, 1h"},
		"no memory has no window":       {rest: "dedupe: never"},
		"a time-out longer than a stop": {route: ", timeout: 26s", want: "routes[0].timeout: longer than relay.stop_timeout"},
	} {
		rest := c.rest
		if rest == "" {
			rest = "dedupe: 24h"
		}
		l, err := loadText(t, "destinations: {a: {program: {command: [/no/such/program], "+rest+"}}}\nroutes: [{match: a, to: a, ordered: false"+c.route+"}]\n")
		if err != nil {
			t.Errorf("%s: %s", name, err)
		}
		if got := strings.Join(l.warnings, "\n"); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: warned %q, want %q", name, got, c.want)
		}
	}
}

// TestProgram_AtTheStart holds what only the start can know: it warns of a program that is missing and a variable that is not
// set, names the mistake of a value, and shows none.
func TestProgram_AtTheStart(t *testing.T) {
	t.Parallel()
	l, err := loadText(t, `
destinations: {a: {program: {command: [/no/such/program, hunter2], dedupe: 24h, env: [API_KEY, NOT_SET]}}}
routes: [{match: a, to: a, ordered: false}]
`)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	rc, err := buildRelay(l, parts{env: environment("API_KEY=hunter2"), log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := closeSinks(rc); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"destination=a variable=NOT_SET", "/no/such/program does not exist; install it"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in\n%s", want, log.String())
		}
	}
	_, err = buildRelay(l, parts{env: environment("API_KEY=hunter2\x00"), log: slog.New(slog.NewTextHandler(&log, nil))})
	if !strings.Contains(errorText(err), "destinations.a.program.env: the value of API_KEY has a NUL in it") {
		t.Error(err)
	}
	if strings.Contains(log.String()+errorText(err), "hunter2") {
		t.Errorf("it shows a value: %s\n%v", log.String(), err)
	}
}

// TestProgram_DestTest holds that a program is tried without being started.
func TestProgram_DestTest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	began := filepath.Join(dir, "began")
	file := write(t, dir, "outboxd.yaml", fmt.Sprintf(`
destinations:
  good: {program: {command: [/bin/sh, -c, "echo >%[1]s"], dedupe: 24h}}
  missing: {program: {command: [/no/such/program], dedupe: never}, width: 3}
`, began))
	for name, c := range map[string]struct {
		code int
		want string
	}{
		"good":    {exitOK, "ok      command: /bin/sh\nok      dir: /\n"},
		"missing": {exitDestination, "failed  command: /no/such/program does not exist; install it, or correct command\n"},
	} {
		if code, stdout, stderr := cli(t, environment(), "dest", "test", name, "-c", file); code != c.code || stdout != c.want {
			t.Errorf("%s: exit %d: %s%s", name, code, stdout, stderr)
		}
	}
	if made, _ := filepath.Glob(began); len(made) > 0 {
		t.Error("it was started")
	}
	const list = "NAME     KIND     WIDTH  RATE  DEDUPE  ROUTES  STATE  PAUSED\n" +
		"good     program  2      -     24h     -       -      -\nmissing  program  3      -     never   -       -      -\n"
	if code, stdout, stderr := cli(t, environment(), "dest", "ls", "-c", file); code != exitOK || stdout != list {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}
