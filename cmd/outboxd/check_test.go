package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
)

// defaultLimits are those of the flags.
func defaultLimits() limits {
	return limits{
		maxAge: time.Minute, warnFailed: -1, warnUnrouted: -1, maxOpen: -1, maxPaused: -1, minRelays: 1, warnRelays: -1,
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	good := dialect.Status{Relays: []dialect.RelayStatus{{Name: "r1"}, {Name: "r2", SeenFor: dialect.Age(time.Hour)}}}
	with := func(change func(*dialect.Status)) dialect.Status {
		s := good
		change(&s)
		return s
	}
	waits := func(why dialect.Why, n int, oldest time.Duration) dialect.Status {
		return with(func(s *dialect.Status) {
			s.Waiting = []dialect.Waits{{RoutingKey: "orders", Why: why, Messages: n, Oldest: dialect.Age(oldest)}}
		})
	}
	failed := with(func(s *dialect.Status) { s.Failed = []dialect.FailedCount{{Messages: 2}, {Messages: 3, More: true}} })
	open := with(func(s *dialect.Status) {
		s.Breakers = []dialect.BreakerStatus{{Relay: "r1", Name: "a", State: "open"}, {Relay: "r2", Name: "b", State: "open"}, {Relay: "r1", Name: "c", State: "ramp"}}
	})
	paused := with(func(s *dialect.Status) { s.Pauses = []dialect.PauseStatus{{Target: "everything"}} })
	routes := []routeConfig{{Match: "mail", To: "out"}}
	for name, c := range map[string]struct {
		status dialect.Status
		routes []routeConfig
		limits func(*limits)
		want   level
		figure string
	}{
		"good":                         {good, nil, nil, levelOK, "relays=1;;1:;0"},
		"no relay":                     {dialect.Status{}, nil, nil, levelCritical, "relays=0;;1:;0"},
		"fewer relays than wanted":     {good, nil, func(l *limits) { l.warnRelays = 2 }, levelWarning, "relays=1;2:;1:;0"},
		"young":                        {waits(dialect.Due, 9, time.Minute), nil, nil, levelOK, "age=60s;;60;0"},
		"old":                          {waits(dialect.Due, 9, time.Minute+time.Millisecond), nil, nil, levelCritical, "age=60.001s;;60;0"},
		"old, and nobody minds":        {waits(dialect.Due, 9, time.Hour), nil, func(l *limits) { l.maxAge = 0 }, levelOK, "age=3600s;;;0"},
		"older than what is a warning": {waits(dialect.Due, 9, 30*time.Second), nil, func(l *limits) { l.warnAge = 10 * time.Second }, levelWarning, "age=30s;10;60;0"},
		"delayed":                      {waits(dialect.Delayed, 9, time.Hour), nil, nil, levelOK, "age=0s;;60;0"},
		"no policy":                    {waits(dialect.NoPolicy, 9, 0), nil, nil, levelCritical, "unrouted=9;;0;0"},
		"no route":                     {waits(dialect.Due, 9, 0), routes, nil, levelCritical, "unrouted=9;;0;0"},
		"no route, but in flight":      {waits(dialect.InFlight, 9, 0), routes, nil, levelOK, "unrouted=0;;0;0"},
		"failed":                       {failed, nil, nil, levelCritical, "failed=5;;0;0"},
		"some may fail":                {failed, nil, func(l *limits) { l.maxFailed, l.warnFailed = 5, 4 }, levelWarning, "failed=5;4;5;0"},
		"open":                         {open, nil, nil, levelWarning, "open=1;0;;0"},
		"open and critical":            {open, nil, func(l *limits) { l.maxOpen = 0 }, levelCritical, "open=1;0;0;0"},
		"paused":                       {paused, nil, nil, levelWarning, "paused=1;0;;0"},
		"paused, and nobody minds":     {paused, nil, func(l *limits) { l.warnPaused = -1 }, levelOK, "paused=1;;;0"},
	} {
		lim := defaultLimits()
		if c.limits != nil {
			c.limits(&lim)
		}
		r := judge(c.status, c.routes, lim)
		var line strings.Builder
		if err := r.print(&line, "nagios"); err != nil || r.Level != c.want || !slices.Contains(strings.Fields(line.String()), c.figure) {
			t.Errorf("%s: %s, want %s with %s: %s", name, r.Level, c.want, c.figure, line.String())
		}
	}
}

// plugin is what the guidelines for plug-ins make of the first line: a text without |, then label=value[unit];[warn];[crit];[min].
var plugin = regexp.MustCompile(`^OUTBOX (OK|WARNING|CRITICAL) - [^|\n]+ \| ([a-z]+=[0-9.]+s?;([0-9.]+:?)?;([0-9.]+:?)?;0 ?)+(\n[^|]*)?$`)

func TestCheck(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, step := range []struct {
		name  string
		make  func()
		code  int
		begin string
	}{
		{"no relay", func() {}, 2, "OUTBOX CRITICAL - 0 relays alive | age=0s;;60;0 failed=0;;0;0 unrouted=0;;0;0 open=0;0;;0 paused=0;0;;0 relays=0;;1:;0\nno relay is alive"},
		{"a relay", func() {
			s.exec("INSERT INTO " + s.schema + ".outbox_relay (name, host, version, config_hash, destinations, started_at, seen_at) VALUES ('r1', 'h', '1', 'c', '{}', now(), now() + interval '1 hour')")
		}, 0, "OUTBOX OK - all is within its limits | "},
		{"a relay that sends nothing", func() {
			s.exec("INSERT INTO " + s.schema + `.outbox_control (kind, name, value) VALUES ('instance', 'outbox', '{"name":"shop"}')`)
		}, 2, "OUTBOX CRITICAL - 0 relays alive | "},
		{"a relay of this instance", func() {
			s.exec("UPDATE " + s.schema + ".outbox_relay SET instance = 'shop'")
		}, 0, "OUTBOX OK - all is within its limits | "},
		{"a pause", func() {
			s.exec("INSERT INTO " + s.schema + `.outbox_control (kind, name, value) VALUES ('pause', 'destination:a|b', '{"actor":"ann"}')`)
		}, 1, "OUTBOX WARNING - 1 paused | "},
		{"failed", func() { broken(s) }, 2, "OUTBOX CRITICAL - 3 failed and not resolved | "},
		{"failed, and many were cancelled since", func() {
			s.exec("INSERT INTO " + s.schema + `.outbox (type, state, due_at, failed_at, resolved_at, reason)
				SELECT 'cancelled', 'failed', NULL, now(), now(), 'cancelled' FROM generate_series(1, 10001)`)
		}, 2, "OUTBOX CRITICAL - 3 failed and not resolved | "},
	} {
		step.make()
		code, stdout, stderr := cli(t, s.env(), "check")
		if code != step.code || stderr != "" || !strings.HasPrefix(stdout, step.begin) || !plugin.MatchString(stdout) {
			t.Fatalf("%s: exit %d, %s: %s", step.name, code, stderr, stdout)
		}
	}
	code, stdout, _ := cli(t, s.env(), "check", "--format", "json")
	var got struct {
		Status string
		Checks []struct {
			Name, Status string
			Value        float64
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 2 || got.Status != "critical" || got.Checks[1].Name != "failed" ||
		got.Checks[1].Value != 3 || got.Checks[0].Status != "ok" {
		t.Errorf("exit %d, %v: %s", code, err, stdout)
	}
	for format, want := range map[string]string{
		"prometheus": "\noutboxd_check_status{check=\"failed\"} 2\n", "text": "critical  3 failed and not resolved\n",
	} {
		if code, stdout, _ := cli(t, s.env(), "check", "--format", format); code != 2 || !strings.Contains(stdout, want) {
			t.Errorf("%s: exit %d: %s", format, code, stdout)
		}
	}
	if code, stdout, stderr := cli(t, s.env(), "check", "--max-failed", "3", "--warn-paused=-1"); code != 0 {
		t.Errorf("within its limits: exit %d, %s: %s", code, stdout, stderr)
	}
}

// TestCheckUnknown holds that nothing but a look at the outbox is another code than 3.
func TestCheckUnknown(t *testing.T) {
	t.Parallel()
	away := environment(envDatabase + "=postgres://nobody@127.0.0.1:1/none?sslmode=disable")
	for args, want := range map[string]string{
		"":                    "OUTBOX UNKNOWN - status of relays: the database at 127.0.0.1:1 does not answer\n",
		"--format prometheus": "# HELP outboxd_check_status 0 ok, 1 warning, 2 critical, 3 unknown.\n# TYPE outboxd_check_status gauge\noutboxd_check_status{check=\"all\"} 3\n",
		"-c none.yaml":        "OUTBOX UNKNOWN - ",
		"--max-age x":         "",
		"--format xml":        "",
		"all":                 "",
		"--nonsense":          "",
	} {
		code, stdout, stderr := cli(t, away, append([]string{"check"}, strings.Fields(args)...)...)
		if code != int(levelUnknown) || !strings.HasPrefix(stdout, want) || (want == "") != (stdout == "") || (want == "") != (stderr != "") {
			t.Errorf("%s: exit %d, %q: %q", args, code, stdout, stderr)
		}
	}
}
