package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestMetrics: of two relays one tells figures of the whole table, and the other takes that over when the first is killed.
// However many types rows name, the series stay few, and the type other sums up.
func TestMetrics(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		db := e.database(t)
		sent, lost := scale(10_000), scale(1000)
		db.insertTypes(t, "orders", sent)
		db.insertTypes(t, "lost", lost)
		relays := map[string]*process{"a": db.telling(t, "a"), "b": db.telling(t, "b")}
		eventually(t, patience, func() error {
			total := 0.0
			for _, p := range relays {
				total += p.figure(t, `outboxd_sends_total{destination="screen",outcome="done",type="other"}`)
			}
			if total != float64(sent) {
				return fmt.Errorf("the relays say that they sent %g messages of other types, want %d", total, sent)
			}
			return nil
		})
		first := teller(t, relays, lost, "")
		for name, p := range relays {
			_, text := ask(t, p.address(t), "/metrics")
			series := 0
			for line := range strings.Lines(text) {
				if !strings.HasPrefix(line, "#") {
					series++
				}
			}
			if series >= 2000 || strings.Contains(text, "type_0") {
				t.Errorf("relay %s has %d series, want fewer than 2,000 and none of a row's type", name, series)
			}
		}
		relays[first].kill(t)
		delete(relays, first)
		second := teller(t, relays, lost, first)
		relays[first] = db.telling(t, first)
		relays[first].waitReady(t, http.StatusOK)
		teller(t, relays, lost, first)
		relays[second].terminate(t)
		delete(relays, second)
		teller(t, relays, lost, second)
	})
}

// insertTypes inserts n messages under one routing key, of n types.
func (d *database) insertTypes(t *testing.T, routingKey string, n int) {
	t.Helper()
	const batch = 200
	for from := 0; from < n; from += batch {
		var values []string
		for i := from; i < min(n, from+batch); i++ {
			values = append(values, fmt.Sprintf("('%s', 'type_%d')", routingKey, i))
		}
		d.exec(t, "INSERT INTO outbox (aggregatetype, type) VALUES "+strings.Join(values, ", "))
	}
}

// telling starts a relay that sends orders, and has metrics.
func (d *database) telling(t *testing.T, name string) *process {
	t.Helper()
	return startRelay(t, fmt.Sprintf(`
relay: {name: %s, lease: %s}
http: {listen: "127.0.0.1:0"}
destinations:
  screen: {stdout: {}}
routes:
  - {match: orders, to: screen}
`, name, d.leaseOf(2*time.Second)), d.env())
}

// teller waits until one of the relays, which is not that one, tells of all messages without a route, and gives its name. No two
// tell at once.
func teller(t *testing.T, relays map[string]*process, unrouted int, not string) (name string) {
	t.Helper()
	eventually(t, patience, func() error {
		var told []string
		for name, p := range relays {
			_, text := ask(t, p.address(t), "/metrics")
			if strings.Contains(text, "\noutboxd_unrouted_messages ") {
				told = append(told, name)
			}
		}
		if len(told) > 1 {
			t.Fatalf("relays %v tell figures of the whole table", told)
		}
		if len(told) == 0 || told[0] == not {
			return fmt.Errorf("relays %v tell figures of the whole table, want one that is not %q", told, not)
		}
		name = told[0]
		got := relays[name].figure(t, "outboxd_unrouted_messages")
		pending := relays[name].figure(t, `outboxd_messages{state="pending",type="other"}`)
		if got != float64(unrouted) || pending != float64(unrouted) {
			return fmt.Errorf("relay %s tells of %g messages without a route and of %g that wait, want %d", name, got, pending, unrouted)
		}
		return nil
	})
	return name
}
