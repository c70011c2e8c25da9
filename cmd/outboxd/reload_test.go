package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// reloadable is a run whose configuration file a test can change.
type reloadable struct {
	*server
	t       *testing.T
	file    string
	address string
	stderr  *safeBuffer
	hangups *hangups
	asked   int
}

const reloadableConfig = `destinations:
  out: {stdout: {}, rate: 100/s}
  kafka: {kafka: {brokers: ["127.0.0.1:1"], topic: t}}
routes:
  - {match: orders, to: out}
`

func newReloadable(t *testing.T) *reloadable {
	t.Helper()
	r := &reloadable{server: migrated(t), t: t, file: filepath.Join(t.TempDir(), "outboxd.yaml"), address: freeAddress(t), stderr: &safeBuffer{}, hangups: newHangups()}
	r.write(reloadableConfig)
	ctx, cancel := context.WithCancel(context.Background())
	p := &program{
		env: r.env("OUTBOXD_CONFIG="+r.file, "OUTBOXD_LISTEN="+r.address), stdin: strings.NewReader(""), stdout: &safeBuffer{}, stderr: r.stderr,
		hangups: r.hangups,
	}
	code := make(chan int, 1)
	go func() { code <- p.run(ctx, []string{"run"}) }()
	t.Cleanup(func() {
		cancel()
		if c := <-code; c != exitOK {
			t.Errorf("exit %d: %s", c, r.stderr)
		}
	})
	eventually(t, "working", func() bool { return strings.Contains(r.stderr.String(), `"msg":"working"`) })
	return r
}

func (r *reloadable) write(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// reload changes the file, asks for a reload, and returns the line that tells what came of it.
func (r *reloadable) reload(pairs ...string) string {
	r.t.Helper()
	r.write(strings.NewReplacer(pairs...).Replace(reloadableConfig))
	if !r.hangups.tell() {
		r.t.Fatal("run does not listen")
	}
	r.asked++
	var told []string
	eventually(r.t, "an answer", func() bool {
		told = slices.DeleteFunc(strings.Split(r.stderr.String(), "\n"), func(line string) bool { return !strings.Contains(line, "reloaded") })
		return len(told) >= r.asked
	})
	return told[r.asked-1]
}

// shows tells whether /metrics has a line.
func (r *reloadable) shows(line string) bool {
	_, body := ask(r.t, "http://"+r.address+"/metrics")
	return strings.Contains(body, "\n"+line+"\n")
}

// TestReload holds that routes and limits change while run goes on, that others see the new configuration, and that
// metrics know of it.
func TestReload(t *testing.T) {
	t.Parallel()
	r := newReloadable(t)
	r.insert(3, "invoices", "invoice")
	if told := r.reload("orders", `"*"`, "100/s", "50/s", "to: out}", "to: out, budget: 3, types: {invoice: {timeout: 1s}}}"); !strings.Contains(told, `"msg":"configuration reloaded"`) {
		t.Fatal(told)
	}
	eventually(t, "the new route takes them", func() bool { return r.count("state = 'done'") == 3 })
	if !r.shows("outboxd_config_last_reload_success 1") {
		t.Error("no metric of it")
	}
	eventually(t, "a series of the new type", func() bool {
		return r.shows(`outboxd_sends_total{destination="out",outcome="done",type="invoice"} 3`)
	})
	hash := loadedFrom(t, r).config.hash()
	eventually(t, "outbox_relay tells", func() bool {
		var told string
		_ = r.QueryRowContext(t.Context(), "SELECT config_hash FROM "+r.schema+".outbox_relay").Scan(&told)
		return told == hash
	})
}

func loadedFrom(t *testing.T, r *reloadable) *loaded {
	t.Helper()
	l, err := load(r.file, r.env())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestReloadRefused holds that a file with a mistake, or with a change that wants a restart, changes nothing, and that one
// line names all that is wrong.
func TestReloadRefused(t *testing.T) {
	t.Parallel()
	r := newReloadable(t)
	for want, pairs := range map[string][]string{
		"unknown key rute":                             {"routes:", "rute:"},
		"routes: there is none":                        {"routes:\n  - {match: orders, to: out}\n", ""},
		"a change of destinations.new wants a restart": {"destinations:\n", "destinations:\n  new: {kafka: {brokers: [\"127.0.0.1:1\"], topic: t}}\n"},
		"a change of destinations.kafka.kafka.brokers, destinations.kafka.kafka.topic wants a restart": {"127.0.0.1:1", "127.0.0.1:2", "topic: t", "topic: u"},
		"a change of relay.stop_timeout wants a restart":                                               {"destinations:\n", "relay: {stop_timeout: 5s}\ndestinations:\n"},
	} {
		told := r.reload(pairs...)
		if !strings.Contains(told, "nothing has changed") || !strings.Contains(told, want) {
			t.Errorf("%s: %s", want, told)
		}
		if !r.shows("outboxd_config_last_reload_success 0") {
			t.Error("no metric of it")
		}
	}
	r.insert(3, "orders", "order_paid")
	eventually(t, "it goes on", func() bool { return r.count("state = 'done'") == 3 })
	if told := r.reload(); !strings.Contains(told, `"msg":"configuration reloaded"`) || !r.shows("outboxd_config_last_reload_success 1") {
		t.Error(told)
	}
}

// TestReloadWhileWaiting holds that what is reloaded before the database answers is in force when it does.
func TestReloadWhileWaiting(t *testing.T) {
	t.Parallel()
	l, err := load("testdata/config/stdout.yaml", environment("OUTBOXD_DATABASE_URL=postgres://127.0.0.1:1/d"))
	if err != nil {
		t.Fatal(err)
	}
	var log safeBuffer
	d := &daemon{program: &program{env: environment("OUTBOXD_DATABASE_URL=postgres://127.0.0.1:1/d")}, file: l.file, loaded: l, log: newLog(&log, l.config.Log), metrics: newMetrics(l.config, build{})}
	d.reload()
	if d.inForce() == l || !strings.Contains(log.String(), "configuration reloaded") {
		t.Error(log.String())
	}
}

// TestFixed holds, key by key, what a reload can change and what it names as wanting a restart.
func TestFixed(t *testing.T) {
	t.Parallel()
	base := func() config {
		return config{
			Database: databaseConfig{URL: Secret{"postgres://hunter2@x/y"}},
			Destinations: map[string]destinationConfig{
				"hook": {Webhook: &webhookConfig{URL: "https://x", Dedupe: "24h", Bearer: Secret{"hunter2"}}, Width: 8, Rate: "50/s", Timeout: time.Second},
				"exec": {Program: &programConfig{Command: []string{"/bin/a"}, Dedupe: "24h"}},
				"sms":  {Webhook: &webhookConfig{URL: "https://y", Dedupe: never}},
			},
			Routes: []routeConfig{{Match: "*", To: "hook"}},
		}
	}
	of := func(name string, change func(*destinationConfig)) func(*config) {
		return func(c *config) {
			d := c.Destinations[name]
			change(&d)
			c.Destinations[name] = d
		}
	}
	for _, c := range []struct {
		change func(*config)
		want   string
	}{
		{func(*config) {}, ""},
		{func(c *config) { c.Routes = []routeConfig{{Match: "x", To: "exec"}} }, ""},
		{of("hook", func(d *destinationConfig) { d.Width, d.Rate, d.Timeout, d.Breaker.Run = 1, "1/s", time.Minute, 9 }), ""},
		{of("hook", func(d *destinationConfig) { d.Webhook.Dedupe = "48h" }), ""},
		{of("exec", func(d *destinationConfig) { d.Program.Dedupe = "48h" }), ""},
		{of("hook", func(d *destinationConfig) { d.Webhook.Dedupe = never }), "destinations.hook.webhook.dedupe"},
		{of("sms", func(d *destinationConfig) { d.Webhook.Dedupe = "1h" }), "destinations.sms.webhook.dedupe"},
		{of("exec", func(d *destinationConfig) { d.Program.Dedupe = memory(never) }), "destinations.exec.program.dedupe"},
		{of("hook", func(d *destinationConfig) { d.Webhook.Bearer = Secret{"hunter3"} }), "destinations.hook.webhook.bearer"},
		{of("exec", func(d *destinationConfig) { d.Program.Command = []string{"/bin/b"} }), "destinations.exec.program.command"},
		{of("hook", func(d *destinationConfig) { d.Webhook, d.Stdout = nil, &stdoutConfig{} }), "destinations.hook.webhook destinations.hook.stdout"},
		{func(c *config) { delete(c.Destinations, "sms") }, "destinations.sms"},
		{func(c *config) { c.Database.URL = Secret{"postgres://hunter3@x/y"} }, "database.url"},
		{func(c *config) { c.Relay.Lease, c.Relay.Name, c.HTTP.Listen = time.Minute, "x", "off" }, "relay.name relay.lease http.listen"},
	} {
		was, is := base(), base()
		c.change(&is)
		if got := strings.Join(differences("", fixed(was), fixed(is)), " "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if len(differences("", was, base())) > 0 {
			t.Error("what was compared has changed")
		}
	}
}

// TestHangupAtStart: a SIGHUP that comes while the configuration is read the first time is no reason to end.
func TestHangupAtStart(t *testing.T) {
	t.Parallel()
	h, asked := newHangups(), false
	env := func(name string) (string, bool) {
		if name == envDatabase {
			if asked = true; !h.tell() {
				t.Error("nobody listens")
			}
		}
		return "", false
	}
	p := &program{env: env, stdin: strings.NewReader(""), stdout: &safeBuffer{}, stderr: &safeBuffer{}, hangups: h}
	if code := p.run(t.Context(), []string{"run", "-c", "testdata/config/stdout.yaml"}); code != exitConfiguration || !asked {
		t.Errorf("exit %d, asked for the database: %v", code, asked)
	}
}
