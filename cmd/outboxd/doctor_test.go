package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
)

// found are the findings of one doctor's visit, by its exit code.
func found(t *testing.T, env lookup, args ...string) (code int, findings []dialect.Finding) {
	t.Helper()
	code, stdout, stderr := cli(t, env, append([]string{"doctor", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &findings); err != nil {
		t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
	return code, findings
}

// expectFinding wants one of that check and verdict whose words, or whose mend, have the text.
func expectFinding(t *testing.T, findings []dialect.Finding, check string, verdict dialect.Verdict, text string) {
	t.Helper()
	for _, f := range findings {
		if f.Check == check && f.Verdict == verdict && strings.Contains(f.What+"\n"+f.Mend, text) {
			return
		}
	}
	t.Errorf("no %s of %s with %q in %+v", verdict, check, text, findings)
}

// TestDoctor: a file without tables is a fault, and exit 1; one with tables has warnings at most, and exit 0.
func TestDoctor(t *testing.T) {
	t.Parallel()
	config := write(t, t.TempDir(), "outboxd.yaml", documentedConfig)
	env := environment("OUTBOXD_DATABASE_URL=sqlite:" + t.TempDir() + "/shop.db")
	code, findings := found(t, env, "-c", config)
	if code != exitUnexpected {
		t.Errorf("exit %d without a file", code)
	}
	expectFinding(t, findings, "file", dialect.VerdictFault, "outboxd migrate up")
	cli(t, env, "migrate", "up")
	cli(t, env, "enqueue", "--type", "odd")
	code, findings = found(t, env, "-c", config)
	if code != exitOK {
		t.Errorf("exit %d with tables: %+v", code, findings)
	}
	expectFinding(t, findings, "insert", dialect.VerdictOK, "rolled back")
	expectFinding(t, findings, "relays", dialect.VerdictWarning, "outboxd run")
	expectFinding(t, findings, "routes", dialect.VerdictWarning, "1 message of routing key odd")
	code, stdout, stderr := cli(t, env, "doctor", "-c", config)
	if code != exitOK || stderr != "" || !strings.Contains(stdout, "ok       claim: ") || !strings.Contains(stdout, "\n         mend: ") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

// TestDoctor_Twins: two relays that run under one name are found by how often it tells that it is alive; and none is while
// there is one.
func TestDoctor_Twins(t *testing.T) {
	t.Parallel()
	l := newFile(t)
	env := func(name string) (string, bool) {
		if value, there := map[string]string{"OUTBOXD_RELAY_NAME": "same", "OUTBOXD_LISTEN": "off"}[name]; there {
			return value, true
		}
		return l.env(name)
	}
	config := write(t, t.TempDir(), "outboxd.yaml", "destinations: {screen: {stdout: {}}}\nroutes: [{match: orders, to: screen}]\n")
	runs := func() {
		t.Helper()
		_, stderr, _ := start(t, env, "run", "-c", config)
		eventually(t, "a relay that works", func() bool { return strings.Contains(stderr.String(), `"msg":"working"`) })
	}
	names := func() dialect.Finding {
		_, findings := found(t, env, "-c", config)
		for _, f := range findings {
			if f.Check == "relay names" {
				return f
			}
		}
		return dialect.Finding{}
	}
	runs()
	eventually(t, "the relay in doctor's eyes", func() bool { return names().Verdict == dialect.VerdictOK })
	runs()
	eventually(t, "two of one name in doctor's eyes", func() bool { return strings.Contains(names().What, "more than one relay runs as same") })
}

// TestFoundWindows compares windows with the tries of the policies that lead there.
func TestFoundWindows(t *testing.T) {
	t.Parallel()
	const billing = `{url: "https://billing.example", dedupe: `
	for config, want := range map[string]dialect.Finding{
		"destinations: {billing: {webhook: " + billing + "24h}}}\nroutes: [{match: a, to: billing, ordered: false}]\n": {
			Verdict: dialect.VerdictOK, What: "billing remembers a key for 24h; the tries of routes[0] end within 8h15m",
		},
		"destinations: {billing: {webhook: " + billing + "6h}}}\nroutes: [{match: a, to: billing, ordered: false}]\n": {
			Verdict: dialect.VerdictWarning, What: "billing remembers a key for 6h, and the tries of routes[0] can go on for 8h15m: 20 tries of 20s, and 4h4m to 8h8m of back-off",
		},
		"destinations: {billing: {webhook: " + billing + "6h}}}\nroutes: [{match: a, to: billing, ordered: false, budget: 3, types: {slow: {budget: 30}}}]\n": {
			Verdict: dialect.VerdictWarning, What: "the tries of routes[0].types.slow can go on for 18h18m",
		},
		"destinations: {billing: {webhook: " + billing + "never}}}\nroutes: [{match: a, to: billing, ordered: false}]\n": {
			Verdict: dialect.VerdictOK, What: "billing remembers no key",
		},
		"destinations: {billing: {webhook: " + billing + "6h}}, screen: {stdout: {}}}\nroutes: [{match: a, to: screen}]\n": {
			Verdict: dialect.VerdictOK, What: "no route leads there",
		},
	} {
		l, err := load(write(t, t.TempDir(), "outboxd.yaml", config), environment())
		if err != nil {
			t.Fatal(err)
		}
		findings := foundConfiguration(l)
		expectFinding(t, findings, "dedupe", want.Verdict, want.What)
		for _, f := range findings {
			if f.Check == "configuration" && strings.Contains(f.What, "dedupe") {
				t.Errorf("said twice: %+v", f)
			}
		}
	}
}

func TestFoundAlive(t *testing.T) {
	t.Parallel()
	configured := config{Destinations: map[string]destinationConfig{"out": {Stdout: &stdoutConfig{}}}}
	ours, version := configured.hash(), builtFrom().Version
	relay := func(name, hash, version string, seen time.Duration) dialect.RelayStatus {
		return dialect.RelayStatus{Name: name, ConfigHash: hash, Version: version, SeenFor: dialect.Age(seen)}
	}
	for name, c := range map[string]struct {
		relays  []dialect.RelayStatus
		verdict dialect.Verdict
		says    string
	}{
		"none":                {nil, dialect.VerdictWarning, "no relay is alive"},
		"a dead one":          {[]dialect.RelayStatus{relay("a", ours, version, time.Hour)}, dialect.VerdictWarning, "the last was a"},
		"two alike":           {[]dialect.RelayStatus{relay("a", ours, version, 0), relay("b", ours, version, 0)}, dialect.VerdictOK, "alive: a, b"},
		"two that differ":     {[]dialect.RelayStatus{relay("a", ours, version, 0), relay("b", "x", version, 0)}, dialect.VerdictWarning, "a against b"},
		"of another file":     {[]dialect.RelayStatus{relay("a", "x", version, 0)}, dialect.VerdictWarning, "than this configuration has"},
		"of two versions":     {[]dialect.RelayStatus{relay("a", ours, "1", 0), relay("b", ours, "2", 0)}, dialect.VerdictWarning, "different versions: a against b"},
		"of another version":  {[]dialect.RelayStatus{relay("a", ours, "0", 0)}, dialect.VerdictOK, "of version 0"},
		"a dead one differs":  {[]dialect.RelayStatus{relay("a", ours, version, 0), relay("b", "x", version, time.Hour)}, dialect.VerdictOK, "alive: a"},
		"a dead one is older": {[]dialect.RelayStatus{relay("a", ours, version, 0), relay("b", ours, "0", time.Hour)}, dialect.VerdictOK, "alive: a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			findings := foundAlive(c.relays, configured)
			expectFinding(t, findings, "relays", c.verdict, c.says)
			if c.verdict == dialect.VerdictOK && countOf(findings, dialect.VerdictWarning) > 0 {
				t.Errorf("%+v", findings)
			}
		})
	}
}

func TestFoundInstance(t *testing.T) {
	t.Parallel()
	sends := map[string]destinationConfig{"out": {Stdout: &stdoutConfig{}}}
	for _, c := range []struct {
		of, ours string
		as       dialect.Verdict
		says     string
	}{
		{"", "", dialect.VerdictOK, "belongs to none"},
		{"", "shop", dialect.VerdictOK, "the first relay of shop"},
		{"shop", "shop", dialect.VerdictOK, "belongs to shop"},
		{"shop", "", dialect.VerdictFault, "this configuration to none"},
		{"shop", "copy", dialect.VerdictFault, "instance: shop"},
	} {
		expectFinding(t, []dialect.Finding{foundInstance(c.of, config{Instance: c.ours, Destinations: sends})}, "instance", c.as, c.says)
	}
	expectFinding(t, []dialect.Finding{foundInstance("shop", config{})}, "instance", dialect.VerdictOK, "belongs to shop")
}

// TestTwice: one relay tells every two seconds, and a look that took long does not make it two.
func TestTwice(t *testing.T) {
	t.Parallel()
	start := time.Now()
	// looks that took so long, and what each was about
	looks := func(took float64, seconds ...float64) (list []beat) {
		for _, s := range seconds {
			from := start.Add(time.Duration(s * float64(time.Second)))
			list = append(list, beat{from, from.Add(time.Duration(took * float64(time.Second)))})
		}
		return list
	}
	at := func(seconds ...float64) []beat { return looks(0.02, seconds...) }
	for name, c := range map[string]struct {
		seen []beat
		want bool
	}{
		"nothing":           {nil, false},
		"one beat":          {at(0, 0.01, 0, 0.02), false},
		"one relay":         {at(0, 0.01, 2, 2.01, 4), false},
		"two, half apart":   {at(0, 0, 1, 1.01, 2, 3), true},
		"two, a bit apart":  {at(0, 0.3, 2, 2.3), true},
		"two, late":         {at(0, 1.4, 1.41, 2), true},
		"two, 1.4 apart":    {looks(0.05, 0, 1.4), true},
		"one, slow looks":   {looks(0.5, 0, 0.4, 0.1, 0.3), false},
		"a clock backwards": {at(4, 2, 0), false},
	} {
		if got := twice(c.seen); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
