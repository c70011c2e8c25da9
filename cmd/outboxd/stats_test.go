package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
)

func TestStatsOf(t *testing.T) {
	t.Parallel()
	took := func(d time.Duration) *dialect.Age { a := dialect.Age(d); return &a }
	minute := dialect.Age(time.Minute)
	var f dialect.Flow
	for n := 1; n <= 20; n++ {
		f.Messages = append(f.Messages, dialect.Passed{RoutingKey: "orders", Type: "paid", State: "done", Age: minute, Took: took(time.Duration(n) * time.Second)})
	}
	f.Messages = append(f.Messages,
		dialect.Passed{RoutingKey: "orders", Type: "sent", State: "pending", Age: minute}, dialect.Passed{RoutingKey: "orders", Type: "sent", State: "in_flight", Age: minute},
		dialect.Passed{RoutingKey: "mail", Type: "mail", State: "failed", Age: minute}, dialect.Passed{RoutingKey: "mail", Type: "mail", State: "failed", Age: dialect.Age(3 * time.Hour)})
	f.Sends = []dialect.Sent{{RoutingKey: "mail", Type: "mail", Outcome: "fail", Age: minute}, {Outcome: "lapse", Age: minute}, {Outcome: "lapse", Age: dialect.Age(2 * time.Hour)}}
	routes := []routeConfig{{Match: "ord*", To: "shop"}}
	for by, want := range map[string]string{
		"type":        "paid 20 20 0 0 10s 19s; sent 2 0 0 2 - -; mail 1 0 1 0 - -; - 0 0 0 0 - -",
		"routing_key": "orders 22 20 0 2 10s 19s; mail 1 0 1 0 - -; - 0 0 0 0 - -",
		"destination": "shop 22 20 0 2 10s 19s; - 1 0 1 0 - -",
	} {
		var lines []string
		for _, s := range statsOf(f, time.Hour, nameBy(by, routes)) {
			text, _ := json.Marshal([]any{s.Name, s.Created, s.Done, s.Failed, s.Waiting, s.Median, s.P95})
			line := strings.NewReplacer(`"`, "", ",", " ", "[", "", "]", "", "null", "-").Replace(string(text))
			lines = append(lines, line)
		}
		if got := strings.Join(lines, "; "); strings.ReplaceAll(got, " 10 19", " 10s 19s") != want {
			t.Errorf("by %s: %s, want %s", by, got, want)
		}
	}
	if got := lookedBack(f, time.Hour, 100); got != time.Hour {
		t.Errorf("fewer than looked for reach back %s", got)
	}
	if got := lookedBack(f, 5*time.Hour, len(f.Messages)); got != 3*time.Hour {
		t.Errorf("as many as looked for reach back %s", got)
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.insert(3, "orders", "order_paid")
	s.exec("UPDATE " + s.schema + ".outbox SET state = 'done', due_at = NULL, done_at = created_at + interval '2 seconds' WHERE seq = 1")
	s.exec("INSERT INTO " + s.schema + ".outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome) SELECT id, 0, 1, 'r', now(), '1 s', 'retry' FROM " + s.schema + ".outbox")
	code, stdout, stderr := cli(t, s.env(), "stats")
	if want := "order_paid 3 0.00 1 0 2 2s 2s 3 retry"; code != exitOK || stderr != "" || !strings.Contains(strings.Join(strings.Fields(stdout), " "), want) {
		t.Errorf("exit %d, %s, want %s in\n%s", code, stderr, want, stdout)
	}
	code, stdout, stderr = cli(t, s.env(), "stats", "--by", "destination", "--limit", "2", "-o", "jsonl")
	if code != exitOK || !strings.HasPrefix(stdout, `{"name":"out","created":`) || !strings.HasPrefix(stderr, "only the newest 2 were looked at: they reach back ") {
		t.Errorf("exit %d, %s: %s", code, stderr, stdout)
	}
	for _, args := range []string{"--by size", "--interval 0s", "--limit 0"} {
		if code, _, stderr := cli(t, s.env(), append([]string{"stats"}, strings.Fields(args)...)...); code != exitUsage {
			t.Errorf("%s: exit %d: %s", args, code, stderr)
		}
	}
}
