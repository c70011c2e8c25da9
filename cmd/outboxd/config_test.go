package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay/sink/webhook"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestGoodConfiguration(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("testdata/config/good/*.yaml")
	if len(files) == 0 {
		t.Fatal("no file")
	}
	for _, file := range files {
		if _, err := load(file, environment()); err != nil {
			t.Errorf("%s: %s", file, err)
		}
	}
}

// TestBadConfiguration holds the message of every mistake, and that each ends in exit code 3.
func TestBadConfiguration(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("testdata/config/bad/*.yaml")
	if len(files) < 40 {
		t.Fatalf("%d files", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := cli(t, environment(), "config", "validate", "-c", file)
			if code != exitConfiguration || stdout != "" {
				t.Errorf("exit %d, stdout %q", code, stdout)
			}
			if strings.Contains(stderr, "hunter2") {
				t.Errorf("it shows the secret: %s", stderr)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", stderr)
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestWholeConfiguration holds that each key of the file reaches its field.
func TestWholeConfiguration(t *testing.T) {
	t.Parallel()
	l, err := load("testdata/config/good/whole.yaml", environment())
	if err != nil {
		t.Fatal(err)
	}
	env := environment("SHOP_DATABASE=postgres://h/d", "SHOP_KAFKA_PASSWORD=x", "SHOP_BILLING_PASSWORD=y")
	rc, err := buildRelay(l, parts{env: env, out: &bytes.Buffer{}, log: newLog(&bytes.Buffer{}, l.config.Log)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeSinks(rc) }()
	if rc.Name != "shop-1" || rc.Lease != 2*time.Second || rc.StopTimeout != 40*time.Second {
		t.Errorf("relay: %+v", rc)
	}
	billing, orders, out := rc.Destinations[0], rc.Destinations[1], rc.Destinations[2]
	if orders.Width != 100 || !orders.PerKey || orders.Breaker.Run != 10 || orders.Breaker.Pause != 2*time.Second ||
		orders.Breaker.Cap != time.Minute || out.PerKey || out.Width != stdoutWidth {
		t.Errorf("destinations: %+v", rc.Destinations)
	}
	route := rc.Routes[0]
	charge, invoice := route.Types["charge_order"], route.Types["invoice.*"]
	if route.Policy.Budget != 30 || charge.Budget != 25 || invoice.Budget != 30 || invoice.Timeout != 5*time.Second ||
		charge.Base != 2*time.Second || charge.Cap != 30*time.Minute || len(charge.Versions) != 1 || len(invoice.Versions) != 2 {
		t.Errorf("route: %+v", route)
	}
	if billing.Width != 4 || billing.PerKey || billing.Dedupe.Window != 24*time.Hour || rc.Routes[2].Policy.Timeout != webhook.DefaultTimeout {
		t.Errorf("webhook: %+v, %+v", billing, rc.Routes[2])
	}
	if longest := l.longestTimeout("billing"); longest != 25*time.Second {
		t.Errorf("the webhook's sink gives up after %s", longest)
	}
	if timeout := rc.Routes[4].Policy.Timeout; timeout != 20*time.Second {
		t.Errorf("the destination's timeout does not reach the route: %s", timeout)
	}
	if longest := l.longestTimeout("orders"); longest != 20*time.Second {
		t.Errorf("the sink gives up after %s", longest)
	}
	if k := l.config.Destinations["orders"].Kafka.sink(); k.Version != "3.6.0" || k.ClientID != "shop" || k.Compression != "zstd" ||
		k.MaxMessageBytes != 1048576 || !k.TombstoneOnEmpty || k.TLS.ServerName != "kafka.internal" || k.SASL.Username != "shop" {
		t.Errorf("kafka: %+v", k)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "outboxd.yaml")
	text := "database: {url_file: ./nowhere, schema: a}\nrelay: {lease: 10s}\nlog: {level: warn}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := load(file, environment("OUTBOXD_DATABASE_URL=postgres://h/d", "DATABASE_URL=postgres://other/d",
		"OUTBOXD_RELAY_LEASE=2s", "OUTBOXD_MIGRATE=1", "OUTBOXD_LISTEN=off", "OUTBOXD_RELAY_NAME=r1",
		"OUTBOXD_KAFKA_BROKERS=a:1, b:2", "OUTBOXD_KAFKA_TOPIC=t", "OUTBOXD_LOG_LEVEL="))
	if err != nil {
		t.Fatal(err)
	}
	c := l.config
	if c.Database.URL.Reveal() != "postgres://h/d" || c.Database.URLFile != "" || c.Database.Schema != "a" || !c.Database.Migrate {
		t.Errorf("database: %+v", c.Database)
	}
	if c.Relay.Lease != 2*time.Second || c.Relay.Name != "r1" || c.HTTP.Listen != "off" || c.Log.Level != "warn" {
		t.Errorf("relay %+v http %+v log %+v", c.Relay, c.HTTP, c.Log)
	}
	k := c.Destinations["kafka"].Kafka
	if k == nil || strings.Join(k.Brokers, " ") != "a:1 b:2" || k.Topic != "t" || c.Routes[0].Match != "*" || c.Routes[0].To != "kafka" {
		t.Errorf("kafka: %+v, routes: %+v", k, c.Routes)
	}
	for path, want := range map[string]string{
		"database.url": "environment OUTBOXD_DATABASE_URL", "database.schema": file + ":1", "relay.lease": "environment OUTBOXD_RELAY_LEASE",
		"relay.stop_timeout": "default", "log.level": file + ":3", "destinations.kafka.kafka.brokers": "environment OUTBOXD_KAFKA_BROKERS",
	} {
		if got := l.origin(path); got != want {
			t.Errorf("origin of %s: %q, want %q", path, got, want)
		}
	}
}

func TestEnvironmentMistakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  []string
		file string
		want string
	}{
		"two urls":              {env: []string{"OUTBOXD_DATABASE_URL=hunter2", "OUTBOXD_DATABASE_URL_FILE=f"}, want: "OUTBOXD_DATABASE_URL: OUTBOXD_DATABASE_URL_FILE is set too; keep one of them\n"},
		"duration":              {env: []string{"OUTBOXD_RELAY_LEASE=30"}, want: "OUTBOXD_RELAY_LEASE: wants a duration with its unit, such as 500ms, 30s or 5m\n"},
		"range":                 {env: []string{"OUTBOXD_RELAY_LEASE=1ms"}, want: "relay.lease: wants 1s to 1h (it comes from the environment OUTBOXD_RELAY_LEASE)\n"},
		"boolean":               {env: []string{"OUTBOXD_MIGRATE=maybe"}, want: "OUTBOXD_MIGRATE: wants true or false\n"},
		"topic without brokers": {env: []string{"OUTBOXD_KAFKA_TOPIC=t"}, want: "OUTBOXD_KAFKA_TOPIC: it needs OUTBOXD_KAFKA_BROKERS beside it\n"},
		"broker without port":   {env: []string{"OUTBOXD_KAFKA_BROKERS=kafka"}, want: "destinations.kafka.kafka.brokers[0]: wants host:port, such as kafka:9092 (it comes from the environment OUTBOXD_KAFKA_BROKERS)\n"},
		"brokers beside destinations": {
			env: []string{"OUTBOXD_KAFKA_BROKERS=kafka:9092"}, file: "testdata/config/good/whole.yaml",
			want: "OUTBOXD_KAFKA_BROKERS: it makes a destination and a route only where the file has none; unset it, or take destinations and routes out of the file\n",
		},
		"no such file": {file: "testdata/none.yaml", want: "cannot read testdata/none.yaml: no such file or directory\n"},
		"endless file": {file: "/dev/zero", want: "/dev/zero is larger than 1 MiB: it is no configuration of outboxd\n"},
		"folder":       {file: "testdata", want: "cannot read testdata: is a directory\n"},
		"nothing to do": {
			env:  []string{"OUTBOXD_DATABASE_URL=postgres://h/d"},
			want: "destinations: there is none; name one in the file, or set OUTBOXD_KAFKA_BROKERS or OUTBOXD_WEBHOOK_URL\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := cli(t, environment(append(c.env, "OUTBOXD_CONFIG="+c.file)...), "config", "validate")
			if code != exitConfiguration || !strings.HasSuffix(stderr, c.want) || strings.Contains(stderr, "hunter2") {
				t.Errorf("exit %d: %q, want %q", code, stderr, c.want)
			}
		})
	}
}

// TestValidateDatabase holds that validate finds what the engine refuses before it connects to anything.
func TestValidateDatabase(t *testing.T) {
	t.Parallel()
	file := write(t, t.TempDir(), "outboxd.yaml", "database:\n  url_env: SHOP\ndestinations: {out: {stdout: {}}}\nroutes: [{match: '*', to: out}]\n")
	for name, c := range map[string]struct {
		env  []string
		want string
	}{
		"a URL of Java":        {[]string{"SHOP=jdbc:mysql://u:hunter2@x/y"}, file + ":2:3: database.url_env: the database URL is one of JDBC: write mysql://"},
		"a short lease":        {[]string{"SHOP=mysql://u:hunter2@h/d", "OUTBOXD_RELAY_LEASE=3s"}, "relay.lease: the lease is too short for MySQL and MariaDB"},
		"a pooler of no use":   {[]string{"SHOP=sqlite:/x.db", "OUTBOXD_DATABASE_POOLER=transaction"}, file + ":2:3: database.url_env: SQLite has no pooler"},
		"a schema of no use":   {[]string{"SHOP=sqlite:/x.db", "OUTBOXD_DATABASE_SCHEMA=other"}, "SQLite has no schemas"},
		"a variable not there": {nil, "database.url_env: the environment variable SHOP is empty or not there"},
	} {
		code, _, stderr := cli(t, environment(append(c.env, "OUTBOXD_CONFIG="+file)...), "config", "validate")
		if code != exitConfiguration || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "hunter2") {
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
	}
	if code, _, stderr := cli(t, environment("SHOP=mysql://u:x@h/d", "OUTBOXD_CONFIG="+file), "config", "validate"); code != exitOK {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestZeroConfigurationIsEnough(t *testing.T) {
	t.Parallel()
	code, _, stderr := cli(t, environment("DATABASE_URL=postgres://h/d", "OUTBOXD_KAFKA_BROKERS=kafka:9092"), "config", "validate")
	if code != exitOK {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "outboxd.yaml")
	text := "destinations: {out: {stdout: {}, timeout: 2m}}\nroutes: [{match: '*', to: out, budget: 2}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := cli(t, environment(), "config", "validate", "-c", file)
	for _, want := range []string{
		"destinations.out.timeout: longer than relay.stop_timeout", "routes[0]: all its tries are over in less than 10 minutes",
	} {
		if code != exitOK || !strings.Contains(stderr, want) {
			t.Errorf("exit %d: %q misses %q", code, stderr, want)
		}
	}
}

func TestMisspeltVariable(t *testing.T) {
	t.Parallel()
	l := &loaded{}
	l.warnMisspelt([]string{"OUTBOXD_RELAY_LEASES", "OUTBOXD_LISTEN", "OUTBOXD_PORT_9465_TCP", "DATABASE_URLS"})
	if want := "OUTBOXD_RELAY_LEASES: this variable is not read; did you mean OUTBOXD_RELAY_LEASE?"; len(l.warnings) != 1 || l.warnings[0] != want {
		t.Errorf("%q", l.warnings)
	}
}

func TestMaskedShow(t *testing.T) {
	t.Parallel()
	env := environment("OUTBOXD_DATABASE_URL=postgres://u:hunter2@h/d", "OUTBOXD_KAFKA_BROKERS=kafka:9092")
	for _, args := range [][]string{{"config", "show"}, {"config", "show", "--resolved"}, {"config", "show", "--resolved", "-o", "json"}} {
		code, stdout, stderr := cli(t, env, args...)
		if code != exitOK || !strings.Contains(stdout, masked) || strings.Contains(stdout+stderr, "hunter2") {
			t.Errorf("%v: exit %d, %s%s", args, code, stdout, stderr)
		}
	}
}
