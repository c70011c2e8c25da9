package integration

import (
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
	"time"
)

// TestOneSendOneRequest: a receiver that cuts connections, redirects, fails, hangs and answers at length. Nothing is
// followed and nothing repeated on the way: as many requests come as sends are on record.
func TestOneSendOneRequest(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	elsewhere := newReceiver(t, always(reply{}))
	never := make(chan struct{})
	r := newReceiver(t, nil)
	faults := []reply{
		{cut: true},
		{status: 307, header: "Location: " + r.url() + "\r\n"},
		{status: 308, header: "Location: " + elsewhere.url() + "\r\n"},
		{status: 301, header: "Location: /elsewhere\r\n"},
		{status: 500},
		{status: 503, header: "Connection: close\r\n", last: true},
		{until: never}, // and is timed out
		{cut: true, takes: 5 * time.Millisecond},
	}
	r.answers(func(one *request) reply {
		hash := fnv.New32a()
		_, _ = fmt.Fprint(hash, one.key, one.nth)
		if n := int(hash.Sum32()) % (len(faults) + 4); n < len(faults) && one.nth < 6 {
			return faults[n]
		}
		return reply{body: strings.Repeat("well done ", one.nth*20)}
	})
	n := scale(2000)
	d.insert(t, n, "charge_order")
	d.exec(t, "UPDATE outbox SET payload = '' WHERE aggregateid LIKE '%3'") // which goes out chunked
	d.relayTo(t, "a", r, shop{"dedupe: 24h", "width: 16, timeout: 1s, breaker: {run: 1000}", "base: 10ms, cap: 100ms"})
	d.waitDone(t, n, "charge_order")
	r.expectSends(t, d)
	d.expect(t, 0, "SELECT count(*) FROM outbox o WHERE attempts <> 1 + (SELECT count(*) FROM outbox_attempt a WHERE a.message_id = o.id AND outcome <> 'done')")
	if came, _, _ := elsewhere.figures(); came != 0 {
		t.Errorf("%d requests followed a redirect", came)
	}
	came, _, _ := r.figures()
	t.Logf("%d messages in %d requests", n, came)
}

// TestIdleConnectionsClosed: a receiver that closes each connection after its answer, without a word about it, so that the
// next request meets a connection that is about to go. A request can be lost so, and none is made twice.
func TestIdleConnectionsClosed(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	r := newReceiver(t, always(reply{last: true}))
	n := scale(5000)
	d.insert(t, n, "charge_order")
	d.relayTo(t, "a", r, shop{"dedupe: 24h", "width: 16, breaker: {run: 1000}", "base: 10ms, cap: 100ms"})
	d.waitDone(t, n, "charge_order")
	r.compareSends(t, d, func(came, known int) bool { return 1 <= came && came <= known })
	t.Logf("%d messages over %d connections; %d sends were lost, %d did not begin", n, r.connections(),
		d.count(t, "SELECT count(*) FROM outbox_attempt WHERE outcome = 'unknown'"),
		d.count(t, "SELECT count(*) FROM outbox WHERE error_class IS NOT NULL AND attempts = 1"))
}
