package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// TestBadMessagesInFront: bad messages, which a destination answers as if it were away, stand in front of good ones of
// the same routing key, and good ones go on coming in. The good ones pass, and the bad ones end at their budget.
func TestBadMessagesInFront(t *testing.T) {
	passed := 5 * time.Minute
	if bounds() {
		passed = time.Minute // alone on the machine
	} else {
		t.Parallel()
	}
	const budget = 3
	d := newDatabase(t)
	sink := &relaytest.Sink{AnswerFunc: func(_ context.Context, s *relaytest.Sending) relay.Outcome {
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // a destination of this speed, no waiting of the test
		if s.Type == "bad" {
			return relay.Retry("http_5xx", "500 Internal Server Error")
		}
		return relay.Done("")
	}}
	begin := relayInside(t, d, "a", relay.Destination{Name: "shop", Sink: sink, Width: 8}, relay.Policy{Budget: budget})
	write := func(kind string, n int) {
		d.exec(t, `INSERT INTO outbox (aggregatetype, type) SELECT 'orders', $1 FROM generate_series(1, $2::int)`, kind, n)
	}
	bad, good := scale(2000), scale(2000)
	write("bad", bad)
	write("good", good)
	begin()

	fresh := time.NewTicker(time.Second / time.Duration(scale(50)))
	defer fresh.Stop()
	until := func(within time.Duration, want int, query string) {
		t.Helper()
		began := time.Now()
		for written := 0; d.count(t, query) < want; written++ {
			if time.Since(began) > within {
				t.Fatalf("%d after %s, want %d: %s", d.count(t, query), within, want, query)
			}
			write("fresh", 1)
			<-fresh.C
		}
		t.Logf("%d after %s: %s", want, time.Since(began).Round(time.Millisecond), query)
	}
	until(passed, good, "SELECT count(*) FROM outbox WHERE type = 'good' AND state = 'done'")
	until(5*time.Minute, bad, "SELECT count(*) FROM outbox WHERE type = 'bad' AND state = 'failed'")
	d.waitCount(t, patience, 0, "SELECT count(*) FROM outbox WHERE state NOT IN ('done', 'failed')")

	if n := d.count(t, fmt.Sprintf("SELECT count(*) FROM outbox WHERE type = 'bad' AND reason = 'exhausted' AND attempts = %d", budget)); n != bad {
		t.Errorf("%d of %d bad messages ended failed(exhausted) after %d attempts", n, bad, budget)
	}
	if n := d.count(t, "SELECT count(*) FROM outbox WHERE type <> 'bad' AND (state <> 'done' OR attempts <> 1)"); n != 0 {
		t.Errorf("%d good messages are not done, or were charged twice", n)
	}
}
