package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/outboxd/outboxd/dialect"
)

// methods are those of the requests that a server got.
type methods struct {
	mu   sync.Mutex
	seen []string
}

func (m *methods) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, req.Method)
	if req.Header.Get("Authorization") != "Bearer s3cret" {
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// TestDestTest holds that each step is told with its mend, that the exit code says whether all is well, and that nothing is
// sent.
func TestDestTest(t *testing.T) {
	t.Parallel()
	dir, seen := t.TempDir(), &methods{}
	plain, secure := httptest.NewServer(seen), httptest.NewUnstartedServer(seen)
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.StartTLS()
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		status := http.StatusServiceUnavailable
		if req.URL.Path == "/unknown" {
			status = http.StatusUnauthorized
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(away.Close)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "shop", "s3cret"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	broker := cluster.ListenAddrs()[0]
	writeTo(t, filepath.Join(dir, "token"), []byte("s3cret\n"))
	writeTo(t, filepath.Join(dir, "other"), []byte("0ther\n"))
	writeTo(t, filepath.Join(dir, "ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	file := write(t, dir, "outboxd.yaml", fmt.Sprintf(`
destinations:
  plain: {webhook: {url: %[2]q, dedupe: 24h, bearer_file: %[1]s/token}}
  stranger: {webhook: {url: %[2]q, dedupe: 24h, bearer_file: %[1]s/other}}
  secure: {webhook: {url: %[3]q, dedupe: 24h, bearer_file: %[1]s/token, tls: {ca_file: %[1]s/ca.pem}}}
  untrusted: {webhook: {url: %[3]q, dedupe: 24h, bearer_file: %[1]s/token}}
  tokenless: {webhook: {url: %[2]q, dedupe: 24h, oauth2: {token_url: "%[5]s/away", client_id: shop, client_secret_file: %[1]s/token}}}
  unknown: {webhook: {url: %[2]q, dedupe: 24h, oauth2: {token_url: "%[5]s/unknown", client_id: shop, client_secret_file: %[1]s/token}}}
  away: {webhook: {url: "http://127.0.0.1:1/", dedupe: never}}
  orders: {kafka: {brokers: [%[4]q], topic: orders, sasl: {mechanism: PLAIN, username: shop, password_env: KAFKA_PASSWORD}}}
  invoices: {kafka: {brokers: [%[4]q], topic: invoices, sasl: {mechanism: PLAIN, username: shop, password_file: %[1]s/token}}}
  screen: {stdout: {}}
`, dir, plain.URL, secure.URL, broker, away.URL))
	for name, c := range map[string]struct {
		code int
		want []string
	}{
		"plain":     {exitOK, []string{"ok      connection: to 127.0.0.1:", "ok      options: HTTP 200 OK"}},
		"stranger":  {exitDestination, []string{"failed  options: HTTP 401 Unauthorized: it does not take our credentials; check bearer"}},
		"secure":    {exitOK, []string{"ok      tls: TLS 1.3, certificate of \"example.com", "ok      options"}},
		"untrusted": {exitDestination, []string{"ok      connection", "failed  tls: ", "; check tls.ca_file"}},
		"tokenless": {exitDestination, []string{"failed  token: no token: the token server answered HTTP 503; that is no mistake in oauth2: wait, and try again"}},
		"unknown":   {exitDestination, []string{"failed  token: no token: the token server answered HTTP 401; check oauth2"}},
		"away":      {exitDestination, []string{"failed  connection: ", "connection refused; check host and port in url"}},
		"orders":    {exitOK, []string{"ok      login " + broker + ": PLAIN", "ok      topic orders: 1 partitions"}},
		"invoices":  {exitDestination, []string{"ok      login", "failed  topic invoices: ", "; create the topic"}},
		"screen":    {exitOK, []string{"ok      standard output: there is nothing to test"}},
		"billing":   {exitNotFound, nil},
	} {
		code, stdout, stderr := cli(t, environment("KAFKA_PASSWORD=s3cret"), "dest", "test", name, "-c", file)
		if code != c.code || (code == exitOK) != (stderr == "") || strings.Contains(stdout+stderr, "s3cret") {
			t.Errorf("%s: exit %d: %s%s", name, code, stdout, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, stdout)
			}
		}
	}
	if strings.Join(seen.seen, " ") != "OPTIONS OPTIONS OPTIONS" {
		t.Errorf("it asked with %q", seen.seen)
	}
	if code, _, stderr := cli(t, environment(), "dest", "test", "orders", "-c", file); code != exitConfiguration || !strings.Contains(stderr, "KAFKA_PASSWORD") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// TestDestList holds what is listed of a configuration alone, and what a database adds.
func TestDestList(t *testing.T) {
	t.Parallel()
	file := write(t, t.TempDir(), "outboxd.yaml", `
destinations:
  billing: {webhook: {url: "http://127.0.0.1:1/x?key=s3cret", dedupe: 24h}, width: 4, rate: 600/m}
  events: {kafka: {brokers: ["127.0.0.1:1"]}}
  payments: {webhook: {url: "http://127.0.0.1:1/", dedupe: never}}
  screen: {stdout: {}}
routes:
  - {match: charges, to: billing, ordered: false}
  - {match: "refund*", to: billing, ordered: false}
  - {match: "*", to: screen}
`)
	code, stdout, stderr := cli(t, environment(), "dest", "ls", "-c", file)
	const want = `NAME      KIND     WIDTH  RATE   DEDUPE  ROUTES            STATE  PAUSED
billing   webhook  4      600/m  24h     charges, refund*  -      -
events    kafka    2000   -      -       -                 -      -
payments  webhook  8      -      never   -                 -      -
screen    stdout   500    -      -       *                 -      -
`
	if code != exitOK || stdout != want {
		t.Errorf("exit %d: %s: %s", code, stdout, stderr)
	}

	e := newExecuted(t)
	_, _, stop := start(t, e.env, "run", "-c", file)
	e.command("pause", "screen", "--indefinitely", "--note", "look", "--yes")
	e.command("enqueue", "--type", "charges")
	list := func() map[string]destRow {
		var all []destRow
		if err := json.Unmarshal([]byte(e.command("dest", "ls", "-o", "json", "-c", file)), &all); err != nil {
			t.Fatal(err)
		}
		by := map[string]destRow{}
		for _, row := range all {
			by[row.Name] = row
		}
		return by
	}
	is := func(s *string, want string) bool { return s != nil && strings.HasPrefix(*s, want) }
	eventually(t, "state and pause are told", func() bool {
		got := list()
		return is(got["screen"].Paused, "until it is resumed") && got["billing"].Paused == nil && is(got["events"].State, "ok")
	})
	stop()
	if got := list(); got["events"].State != nil {
		t.Errorf("no relay is alive, and it is said to be %s", *got["events"].State)
	}

	code, stdout, stderr = cli(t, environment("OUTBOXD_DATABASE_URL=postgres://u:hunter2@127.0.0.1:1/d"), "dest", "ls", "-c", file)
	if code != exitDatabase || stdout != want || strings.Contains(stderr, "hunter2") {
		t.Errorf("exit %d: %s: %s", code, stdout, stderr)
	}
}

// TestStateOfDestinations holds how what relays told is put together.
func TestStateOfDestinations(t *testing.T) {
	t.Parallel()
	status := dialect.Status{
		Relays: []dialect.RelayStatus{
			{Name: "r1", Destinations: []string{"billing", "events"}},
			{Name: "dead", Destinations: []string{"away"}, SeenFor: dialect.Age(time.Hour)},
		},
		Breakers: []dialect.BreakerStatus{
			{Name: "billing", Relay: "r1", State: "open"},
			{Name: "billing", Relay: "dead", State: "ramp"},
			{Name: "events", Relay: "r1", State: "ok"},
			{Name: "events/orders", Relay: "r1", State: "ramp"},
		},
	}
	for name, want := range map[string]string{"billing": "open at r1", "events": "ramp at r1 for orders", "away": "-", "new": "-"} {
		if got := cell(reflect.ValueOf(stateOf(status, name))); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
