package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestRunExecutes holds the way from the file to the wire and back: a command is executed with its credentials, its result
// kept, and the application told by a message that takes a route of its own.
func TestRunExecutes(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	var wrong atomic.Int32
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ok := r.Header.Get("Authorization") == "Bearer the token" && r.Header.Get("X-Request-Id") != "" && r.Header.Get("X-Tenant") == "acme" &&
			r.Header.Get("Webhook-Signature") != ""
		if !ok {
			wrong.Add(1)
		}
		if r.Header.Get("Outbox-Type") == "refund" {
			http.Error(w, "no such charge", http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(`{"charge": {"id": "ch_` + r.Header.Get("X-Request-Id") + `"}}`))
	}))
	defer receiver.Close()
	dir := t.TempDir()
	file := write(t, dir, "outboxd.yaml", `
destinations:
  billing:
    webhook:
      url: `+receiver.URL+`
      dedupe: 24h
      key_header: X-Request-Id
      headers: {X-Tenant: acme}
      bearer_file: `+write(t, dir, "token", "the token\n")+`
      secrets: [whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3]
      result: /charge/id
      outcomes: {"404": fail}
    rate: 1000/s
  out: {stdout: }
routes:
  - {match: charges, to: billing, ordered: false, types: {charge_order: {emit: charge_result}, "refund*": {emit: charge_result}}}
  - {match: charge_result, to: out}
`)
	s.insert(3, "charges", "charge_order")
	s.insert(1, "charges", "refund")
	s.insert(1, "charges", "ping")
	code, stdout, stderr := cli(t, s.env("OUTBOXD_CONFIG="+file), "run", "--once")
	if code != exitOK || wrong.Load() > 0 {
		t.Fatalf("exit %d, %d requests without their headers: %s", code, wrong.Load(), stderr)
	}
	if n := s.count("type = 'charge_order' AND state = 'done' AND result = 'ch_' || id"); n != 3 {
		t.Errorf("%d charges are done with their result", n)
	}
	if n := s.count("type = 'refund' AND state = 'failed' AND reason = 'rejected' AND attempts = 1"); n != 1 {
		t.Errorf("%d refunds are rejected", n)
	}
	if n := s.count("type = 'charge_result' AND aggregatetype IS NULL AND state = 'done'"); n != 4 {
		t.Errorf("%d messages tell of what became final", n)
	}
	states := map[string]int{}
	for line := range strings.SplitSeq(strings.TrimSpace(stdout), "\n") {
		var message struct{ Payload string }
		var told struct{ Type, State string }
		if err := json.Unmarshal([]byte(line), &message); err != nil {
			t.Fatalf("%s: %s", line, err)
		}
		if err := json.Unmarshal([]byte(message.Payload), &told); err != nil {
			t.Fatalf("%s: %s", line, err)
		}
		states[told.Type+" "+told.State]++
	}
	if states["charge_order done"] != 3 || states["refund failed"] != 1 || len(states) != 2 {
		t.Errorf("told of %v: %s", states, stdout)
	}
}
