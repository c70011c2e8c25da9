package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// shop is a webhook destination with a route for all messages, in the words of the configuration.
type shop struct{ webhook, destination, route string }

// relayTo starts a relay that sends every message to a receiver.
func (d *database) relayTo(t *testing.T, name string, r *receiver, s shop) *process {
	t.Helper()
	config := fmt.Sprintf(`
relay: {name: %s, lease: %s}
http: {listen: "127.0.0.1:0"}
destinations:
  shop: {webhook: {%s}, %s}
routes:
  - {match: "*", to: shop, ordered: false, %s}
`, name, d.leaseOf(2*time.Second), strings.Join([]string{fmt.Sprintf("url: %q", r.url()), s.webhook}, ", "), s.destination, s.route)
	return startRelay(t, config, d.env())
}

// figure is the value of a series of a child's metrics, 0 where it has none of that name.
func (p *process) figure(t *testing.T, series string) (value float64) {
	t.Helper()
	_, text := ask(t, p.address(t), "/metrics")
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(line, series+" "); found {
			if _, err := fmt.Sscan(rest, &value); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
	}
	return value
}

// operate asks for an operation, and waits until it is applied.
func (d *database) operate(t *testing.T, args ...string) {
	t.Helper()
	if _, stderr, code := outboxd(t, d.env(), append(args, "--yes", "--wait")...); code != 0 {
		t.Fatalf("outboxd %s: exit code %d\n%s", strings.Join(args, " "), code, stderr)
	}
}

// waitProblem waits until `outboxd status` says these words. config may be empty.
func (d *database) waitProblem(t *testing.T, config string, words ...string) {
	t.Helper()
	args := []string{"status", "-o", "json"}
	if config != "" {
		args = append(args, "--config", configFile(t, config))
	}
	eventually(t, patience, func() error {
		stdout, stderr, code := outboxd(t, d.env(), args...)
		var status struct{ Problems []string }
		if err := json.Unmarshal([]byte(stdout), &status); code != 0 || err != nil {
			t.Fatalf("outboxd status: exit code %d, %v\n%s", code, err, stderr)
		}
		for _, problem := range status.Problems {
			found := 0
			for _, w := range words {
				if strings.Contains(problem, w) {
					found++
				}
			}
			if found == len(words) {
				return nil
			}
		}
		return fmt.Errorf("the status says %q, and nothing of %q", status.Problems, words)
	})
}

// waitFigure waits until a series of a child's metrics has at least that value.
func (p *process) waitFigure(t *testing.T, series string, least float64) {
	t.Helper()
	eventually(t, patience, func() error {
		if got := p.figure(t, series); got < least {
			return fmt.Errorf("%s is %v, want %v", series, got, least)
		}
		return nil
	})
}

// waitLeast waits until a query returns at least that number.
func (d *database) waitLeast(t *testing.T, least int, query string) {
	t.Helper()
	eventually(t, patience, func() error {
		if got := d.count(t, query); got < least {
			return fmt.Errorf("%d, want at least %d: %s", got, least, query)
		}
		return nil
	})
}

// waitDone waits until n messages of a type are done.
func (d *database) waitDone(t *testing.T, n int, kind string) {
	t.Helper()
	d.waitCount(t, patience, n, "SELECT count(*) FROM outbox WHERE type = '"+kind+"' AND state = 'done'")
}

// expectSends holds the receiver against the table: of each message as many requests came as its relays know of.
func (r *receiver) expectSends(t *testing.T, d *database) {
	t.Helper()
	r.compareSends(t, d, func(came, known int) bool { return came == known })
}

// compareSends compares, of each message, the requests that came with the sends that its relays know of.
func (r *receiver) compareSends(t *testing.T, d *database, right func(came, known int) bool) {
	t.Helper()
	came, wrong := r.byKey(), 0
	for _, row := range d.rows(t, `SELECT o.id, count(a.message_id) + CASE WHEN o.state = 'done' THEN 1 ELSE 0 END FROM outbox o
		LEFT JOIN outbox_attempt a ON a.message_id = o.id AND a.outcome NOT IN ('done', 'lapse') GROUP BY o.id, o.state`) {
		known, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		if !right(len(came[row[0]]), known) {
			if wrong++; wrong <= 5 {
				t.Errorf("message %s came %d times, and its relays know of %d sends", row[0], len(came[row[0]]), known)
			}
		}
		delete(came, row[0])
	}
	if wrong > 5 {
		t.Errorf("so it is with %d messages", wrong)
	}
	if len(came) > 0 {
		t.Errorf("%d keys came that are of no message", len(came))
	}
}

// inAnySecond is how many of these times lie within one second, at most.
func inAnySecond(times []time.Time) (most int) {
	times = slices.SortedFunc(slices.Values(times), time.Time.Compare)
	first := 0
	for i, at := range times {
		for at.Sub(times[first]) >= time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
