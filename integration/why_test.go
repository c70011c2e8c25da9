package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// explained is what `outboxd why` says of a message.
type explained struct {
	State, Why, Next string
	Commands         []string
}

// asker asks why about messages of one database.
type asker struct {
	*database
	config string // of the relay; empty: there is none
	ids    map[string]string
}

// ask asks about the message of a type.
func (a *asker) ask(t *testing.T, kind string) explained {
	t.Helper()
	args := []string{"why", a.ids[kind], "-o", "json"}
	if a.config != "" {
		args = append(args, "-c", a.config)
	}
	stdout, stderr, code := outboxd(t, a.env(), args...)
	var answers []explained
	if err := json.Unmarshal([]byte(stdout), &answers); err != nil || code != 0 || len(answers) != 1 {
		t.Fatalf("outboxd why: exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	return answers[0]
}

// hears waits until the answer holds these words in why and in next.
func (a *asker) hears(t *testing.T, kind, why, next string) explained {
	t.Helper()
	var last explained
	eventually(t, patience, func() error {
		last = a.ask(t, kind)
		if strings.Contains(last.Why, why) && strings.Contains(last.Next, next) {
			return nil
		}
		return fmt.Errorf("%s: %+v\nwant %q and %q", kind, last, why, next)
	})
	return last
}

// obeys runs a command that an answer named.
func (a *asker) obeys(t *testing.T, command string) {
	t.Helper()
	args := append(words(command)[1:], "--yes")
	if _, stderr, code := outboxd(t, a.env(), args...); code != 0 {
		t.Fatalf("%s: exit code %d\n%s", command, code, stderr)
	}
}

// TestWhy follows messages of a real relay through what can become of them, and does what the answers say.
func TestWhy(t *testing.T) {
	onEngines(t, whyOn)
}

func whyOn(t *testing.T, e engine) {
	hang := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.Header.Get("Outbox-Type") {
		case "good":
			w.Header().Set("Location", "/charges/7")
			w.WriteHeader(http.StatusCreated)
		case "bad":
			http.Error(w, "unknown currency", http.StatusUnprocessableEntity)
		case "busy":
			http.Error(w, "try later", http.StatusServiceUnavailable)
		case "slow":
			<-hang
		}
	}))
	t.Cleanup(receiver.Close)
	t.Cleanup(func() { close(hang) })
	d := e.database(t)
	config := fmt.Sprintf(`
relay: {name: first, lease: %s}
http: {listen: "off"}
destinations: {billing: {timeout: 1m, webhook: {url: %q, dedupe: 24h}}}
routes:
  - match: charges
    to: billing
    ordered: false
    budget: 3
    types: {busy: {base: 1h}, later: {versions: [2]}}
`, e.leaseOf(e.lease), receiver.URL)
	a := &asker{d, configFile(t, config), map[string]string{}}
	for _, kind := range []string{"good", "bad", "busy", "slow", "later"} {
		a.write(t, kind, "charges")
	}
	a.write(t, "lost", "elsewhere")

	a.hears(t, "good", "it has been due since ", "no relay is alive: ")
	first := startRelay(t, config, d.env())
	good := a.hears(t, "good", "its destination acknowledged it at ", "nothing: ")
	if good.State != "done" || !strings.Contains(good.Why, "/charges/7, after 1 attempt and ") {
		t.Errorf("%+v", good)
	}
	a.hears(t, "busy", "attempt 1 of 3 by relay first was turned down at ", "then relay first takes it and sends it to billing: attempt 2 of 3")
	a.hears(t, "later", "a relay turned it back, because no policy accepted version 1 of type later", "only version 2 of type later: add 1 to versions")
	a.hears(t, "lost", "it has been due since ", "no route takes routing key elsewhere: ")
	a.hears(t, "slow", "relay first took it at ", "the outcome is written when its send ends, which may take 1m; ")

	blind := &asker{d, "", a.ids}
	blind.hears(t, "lost", "", " route for routing key elsewhere")
	blind.hears(t, "busy", "attempt 1 by relay first was turned down at ", "only the configuration says: add -c FILE")

	bad := a.hears(t, "bad", "its destination answered that it will never take it: http_4xx (HTTP 422 Unprocessable Entity); it said: unknown currency",
		"correct its payload, or replay it")
	a.obeys(t, bad.Commands[1])
	d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox WHERE type = 'bad' AND state = 'failed' AND replays = 1 AND send_id IS NOT NULL")
	a.obeys(t, strings.Replace(bad.Commands[0], "FILE", configFile(t, `{"currency":"EUR"}`), 1))
	d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox WHERE type = 'bad' AND state = 'failed' AND replays = 2")
	life, stderr, code := outboxd(t, d.env(), "get", a.ids["bad"], "--attempts")
	if code != 0 || strings.Count(life, " failed: rejected ") != 3 || !strings.Contains(life, " replay by ") || !strings.Contains(life, " correct by ") {
		t.Errorf("exit code %d\n%s%s", code, life, stderr)
	}

	if _, stderr, code := outboxd(t, d.env(), "pause", "--routing-key", "charges", "--for", "1h", "--note", "upgrade", "--yes", "--wait"); code != 0 {
		t.Fatalf("outboxd pause: exit code %d\n%s", code, stderr)
	}
	paused := a.hears(t, "busy", "", "routing_key:charges is paused by ")
	if !strings.Contains(paused.Next, " (upgrade) until ") {
		t.Errorf("%+v", paused)
	}
	a.obeys(t, paused.Commands[0])
	a.hears(t, "busy", "", "then relay first takes it")

	first.kill(t)
	a.hears(t, "slow", "has stood still for longer than that", "no other relay is alive to take the message back: ")
	startRelay(t, strings.Replace(config, "name: first", "name: second", 1), d.env())
	a.hears(t, "slow", "1 lease before ended without an outcome of it; an earlier send, at ", "the outcome is written when its send ends")
	if in, stderr, code := outboxd(t, d.env(), "get", a.ids["slow"], "--attempts"); code != 0 || !strings.Contains(in, " lapse ") || !strings.Contains(in, " claimed ") {
		t.Errorf("exit code %d\n%s%s", code, in, stderr)
	}
}

// write writes a message of a type.
func (a *asker) write(t *testing.T, kind, routingKey string) {
	t.Helper()
	a.exec(t, fmt.Sprintf("INSERT INTO outbox (type, aggregatetype, payload) VALUES ('%s', '%s', '{}')", kind, routingKey))
	a.ids[kind] = a.texts(t, "SELECT id FROM outbox WHERE type = '"+kind+"'")[0]
}
