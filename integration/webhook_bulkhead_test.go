package integration

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// bulkheads starts a relay with two receivers and the screen as destinations.
func (d *database) bulkheads(t *testing.T, a, b *receiver, timeout time.Duration) {
	t.Helper()
	startRelay(t, fmt.Sprintf(`
relay: {name: a, lease: %s}
http: {listen: "off"}
destinations:
  a: {webhook: {url: %q, dedupe: 24h}, width: 8, timeout: %s}
  b: {webhook: {url: %q, dedupe: 24h}, width: 8, timeout: %s}
  screen: {stdout: {}}
routes:
  - {match: a, to: a, ordered: false}
  - {match: b, to: b, ordered: false}
  - {match: shown, to: screen}
`, d.leaseOf(2*time.Second), a.url(), timeout, b.url(), timeout), d.env())
}

// TestOneHostHangs: a host takes requests and never answers. Its messages wait for its own places only: while its first
// requests hang, all of another host's places are used, and everything for that host and for the screen is done.
func TestOneHostHangs(t *testing.T) {
	t.Parallel()
	const width = 8
	d := newDatabase(t)
	never := make(chan struct{})
	a := newReceiver(t, always(reply{until: never}))
	together := make(chan struct{}) // closed when all of the other host's places are in use at once
	all := sync.OnceFunc(func() { close(together) })
	b := newReceiver(t, func(one *request) reply {
		if one.beside == width {
			all()
		}
		return reply{until: together, takes: 2 * time.Millisecond}
	})
	d.insert(t, scale(5000), "a")
	d.bulkheads(t, a, b, 5*patience)
	a.waitUnderWay(t, width)

	d.insert(t, width, "b")
	d.waitCount(t, patience, width, "SELECT count(*) FROM outbox WHERE type = 'b' AND state = 'done'")
	n := scale(1000)
	for i := 1; i <= n; i++ {
		d.insert(t, 1, "b")
		if i%10 == 0 {
			d.insert(t, 1, "shown")
			d.insert(t, 10, "a")
		}
	}
	d.waitCount(t, patience, width+n, "SELECT count(*) FROM outbox WHERE type = 'b' AND state = 'done'")
	d.waitCount(t, patience, n/10, "SELECT count(*) FROM outbox WHERE type = 'shown' AND state = 'done'")
	d.expect(t, 0, "SELECT count(*) FROM outbox WHERE type <> 'a' AND attempts <> 1")

	if came, underWay, _ := a.figures(); came != width || underWay != width {
		t.Errorf("%d requests came to the host that hangs, %d of them are under way, want %d", came, underWay, width)
	}
	d.expect(t, width, "SELECT count(*) FROM outbox WHERE type = 'a' AND state = 'in_flight'")
}

// TestOneHostHangs_Latency: how long a message of one host takes is the same whether another host hangs or not.
func TestOneHostHangs_Latency(t *testing.T) {
	if !bounds() {
		t.Skip("it compares times: OUTBOXD_TEST_SLOW=1 runs it")
	}
	d := newDatabase(t)
	never := make(chan struct{})
	a := newReceiver(t, always(reply{until: never}))
	b := newReceiver(t, always(reply{takes: 2 * time.Millisecond}))
	d.bulkheads(t, a, b, 20*time.Second)
	median := func(n int) time.Duration {
		var took []time.Duration
		for range n {
			began := time.Now()
			came, _, _ := b.figures()
			d.insert(t, 1, "b")
			for got := came; got == came; got, _, _ = b.figures() {
				<-time.After(time.Millisecond)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	without := median(500)
	d.insert(t, 5000, "a")
	a.waitUnderWay(t, 8)
	with := median(500)
	t.Logf("half of the messages arrive within %s while another host hangs, %s otherwise", with, without)
	if with > 2*without {
		t.Errorf("half of the messages arrive within %s while another host hangs, %s otherwise", with, without)
	}
}
