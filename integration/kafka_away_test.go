package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestKafkaAway: the broker goes away in the middle of a batch, stays away for a minute while messages come in, and comes
// back. Nothing is lost, only what was under way is charged twice, no other destination waits, and the status says in
// words what is wrong.
func TestKafkaAway(t *testing.T) {
	t.Parallel()
	// A broker that is gone closes connections; one behind a broken network just says nothing.
	for name, away := range map[string]func(p *proxy, away bool){
		"refuses":      (*proxy).setDown,
		"says nothing": (*proxy).setSilent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kafkaAway(t, away)
		})
	}
}

func kafkaAway(t *testing.T, away func(*proxy, bool)) {
	t.Helper()
	d := newDatabase(t)
	broker := newKafkaProxy(t)
	topic := newTopic(t, 3)
	env := []string{"OUTBOXD_DATABASE_URL=" + d.url}
	startRelay(t, fmt.Sprintf(`
relay: {name: a, lease: 10s}
http: {listen: "off"}
destinations:
  broker: {kafka: {brokers: [%q], topic: %q}, timeout: 5s}
  screen: {stdout: {}}
routes:
  - {match: shown, to: screen}
  - {match: "*", to: broker}
`, broker.address(), topic), env)
	d.insert(t, 1, "order_paid")
	d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox WHERE state = 'done'")

	acknowledgement := broker.hold(responses("Produce"))
	d.insert(t, 100, "order_paid")
	acknowledgement.wait(t) // these are under way
	away(broker, true)
	acknowledgement.cut()
	gone := time.Now()
	waiting := 0 // come in once the breaker is open: how many of an earlier burst are handed over is a matter of milliseconds

	words := ""
	for shown := 1; words == "" || time.Since(gone) < scaleDuration(time.Minute); shown++ {
		d.insert(t, 1, "shown")
		d.waitCount(t, patience, shown, "SELECT count(*) FROM outbox WHERE type = 'shown' AND state = 'done'")
		if words == "" {
			if words = openBreakerIn(t, env); words != "" {
				waiting = scale(5000)
				d.insert(t, waiting, "order_paid")
			}
		}
		if words == "" && time.Since(gone) > 2*patience {
			t.Fatal("the status tells of no open breaker")
		}
	}
	if !strings.Contains(words, "destination broker is open at relay a: after ") || !strings.Contains(words, "; the last: ") {
		t.Errorf("the status says: %s", words)
	}
	if n := d.count(t, "SELECT count(*) FROM outbox WHERE type = 'shown' AND attempts <> 1"); n != 0 {
		t.Errorf("%d messages of the other destination were hindered", n)
	}

	away(broker, false)
	back := time.Now()
	all := 1 + 100 + waiting
	d.waitCount(t, 2*time.Minute, all, "SELECT count(*) FROM outbox WHERE type = 'order_paid' AND state = 'done'")
	t.Logf("done %s after the broker is back", time.Since(back).Round(time.Millisecond))
	const underWay = "id IN (SELECT message_id FROM outbox_attempt)"
	if n := d.count(t, "SELECT count(*) FROM outbox WHERE attempts <> 1 AND NOT "+underWay); n != 0 {
		t.Errorf("%d messages that were never under way were charged more than once", n)
	}
	if n := d.count(t, "SELECT count(*) FROM outbox WHERE attempts > 2"); n != 0 {
		t.Errorf("%d messages were charged more than twice", n)
	}
	if n := d.count(t, "SELECT count(*) FROM outbox WHERE type = 'order_paid' AND "+underWay); n > 150 {
		t.Errorf("%d messages went out to a broker that is away", n)
	}
	wantArrived(t, d, topic, all)
}

// openBreakerIn is what `outboxd status` says of an open breaker, empty if it knows of none.
func openBreakerIn(t *testing.T, env []string) string {
	t.Helper()
	stdout, stderr, code := outboxd(t, env, "status", "-o", "json")
	var status struct{ Problems []string }
	if err := json.Unmarshal([]byte(stdout), &status); code != 0 || err != nil {
		t.Fatalf("outboxd status: exit code %d, %v\n%s", code, err, stderr)
	}
	for _, problem := range status.Problems {
		if strings.Contains(problem, " is open at relay ") {
			return problem
		}
	}
	return ""
}

// wantArrived compares a topic with the table: each of n messages is in it, and where its result says.
func wantArrived(t *testing.T, d *database, topic string, n int) {
	t.Helper()
	places := map[string]string{}
	for _, row := range d.rows(t, "SELECT id, result FROM outbox WHERE result LIKE '%@%'") {
		places[row[0]] = strings.TrimRight(row[1], " ")
	}
	arrived := map[string]bool{}
	for _, r := range readTopic(t, topic) {
		id, _ := header(r, "id")
		arrived[id] = arrived[id] || places[id] == place(r)
	}
	right := 0
	for _, there := range arrived {
		if there {
			right++
		}
	}
	if right != n || len(arrived) != n {
		t.Errorf("%d of %d messages arrived where their result says, %d ids in the topic", right, n, len(arrived))
	}
}
