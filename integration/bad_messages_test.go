package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestBadMessagesInFront: payloads of one version, which a receiver answers as if it were out of order, stand in front of
// good ones of the same type, and good ones go on coming in. The good ones pass, and the bad ones are charged and end at
// their budget.
func TestBadMessagesInFront(t *testing.T) {
	passed := 5 * time.Minute
	if bounds() {
		passed = 2 * time.Minute // alone on the machine
	} else {
		t.Parallel()
	}
	const budget = 3
	d := newDatabase(t)
	server := newReceiver(t, func(r *request) reply {
		if r.header.Get("Outbox-Schema-Version") == "2" {
			return reply{status: 500, takes: 5 * time.Millisecond}
		}
		return reply{takes: 5 * time.Millisecond}
	})
	write := func(version, n int, name string) {
		d.exec(t, `INSERT INTO outbox (aggregatetype, type, schema_version, aggregateid)
			SELECT 'charges', 'charge_order', $1, $2 FROM generate_series(1, $3::int)`, version, name, n)
	}
	bad, good := scale(5000), scale(5000)
	write(2, bad, "bad")
	write(1, good, "good")
	p := d.relayTo(t, "a", server, shop{"dedupe: 24h", "width: 8", fmt.Sprint("budget: ", budget)})

	fresh := time.NewTicker(time.Second / 20)
	defer fresh.Stop()
	written := 0
	until := func(within time.Duration, want int, query string) {
		t.Helper()
		began := time.Now()
		for d.count(t, query) < want {
			if time.Since(began) > within {
				t.Fatalf("%d after %s, want %d: %s", d.count(t, query), within, want, query)
			}
			write(1, 1, "fresh")
			written++
			<-fresh.C
		}
		t.Logf("%d after %s: %s", want, time.Since(began).Round(time.Millisecond), query)
	}
	until(passed, good, "SELECT count(*) FROM outbox WHERE aggregateid = 'good' AND state = 'done'")
	until(10*time.Minute, bad, "SELECT count(*) FROM outbox WHERE aggregateid = 'bad' AND state = 'failed'")
	d.waitCount(t, patience, 0, "SELECT count(*) FROM outbox WHERE state NOT IN ('done', 'failed')")

	if n := d.count(t, fmt.Sprintf("SELECT count(*) FROM outbox WHERE aggregateid = 'bad' AND reason = 'exhausted' AND attempts = %d", budget)); n != bad {
		t.Errorf("%d of %d bad messages ended failed(exhausted) after %d attempts", n, bad, budget)
	}
	d.expect(t, 0, "SELECT count(*) FROM outbox WHERE schema_version = 1 AND (state <> 'done' OR attempts <> 1)")
	openings := strings.Count(p.stderr.String(), "destination open")
	t.Logf("the destination was held to be away %d times", openings)
	if openings > 20 { // five to ten, of hundreds if it did not learn
		t.Errorf("the destination was held to be away %d times", openings)
	}
	server.expectSends(t, d)
}
