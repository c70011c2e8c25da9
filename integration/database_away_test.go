package integration

import (
	"fmt"
	"testing"
	"time"
)

// TestDatabaseAway: the database is away for two leases, for all relays at once, while one of them gets its sends
// acknowledged. Another sees the database again first, and the lease as old as it is; it takes nothing over, and nothing is
// sent again.
func TestDatabaseAway(t *testing.T) {
	onServers(t, func(t *testing.T, e engine) {
		for name, set := range map[string]func(p *proxy, away bool){
			"refuses": (*proxy).setDown,
			"silent":  (*proxy).setSilent,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				databaseAway(t, e, set)
			})
		}
	})
}

func databaseAway(t *testing.T, e engine, set func(p *proxy, away bool)) {
	s := newSpine(t, e, 2*time.Second)
	database, url := s.proxy(t, s.url)
	broker := newKafkaProxy(t)
	holder := s.relay(t, "holder", at{url, broker.address()})
	s.waitAlive(t, "holder")
	sending := broker.hold(responses("Produce"))
	n := scale(300)
	s.insertOdd(t, n)
	s.waitRecords(t, 1)
	others, url := s.proxy(t, s.url)
	looks := others.count(answers(s.said.watch))
	s.relay(t, "other", at{url, broker.address()})
	watched(t, looks, 5)

	for _, p := range []*proxy{database, others} {
		set(p, true)
	}
	gone := time.Now()
	sending.release()
	<-time.After(2 * s.lease)
	s.expect(t, n, "SELECT count(*) FROM outbox WHERE state = 'in_flight'")
	s.insertOdd(t, n)
	set(others, false)
	watched(t, looks, 1)
	set(database, false)
	back := time.Now()
	s.waitDone(t, 2*n)
	t.Logf("away for %s, %d messages done %s after", back.Sub(gone).Round(time.Millisecond), 2*n, time.Since(back).Round(time.Millisecond))

	expectTimes(t, s.delivered(t), 2*n, 1, 1)
	s.expect(t, 2*n, "SELECT count(*) FROM outbox WHERE attempts = 1 AND lapses = 0 AND NOT {unknown}")
	s.expect(t, 0, "SELECT count(*) FROM outbox_attempt")
	if code := holder.terminate(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
}

// watched waits until a relay has looked at the leases so many times more.
func watched(t *testing.T, looks *tally, times int64) {
	t.Helper()
	from := looks.n.Load()
	eventually(t, patience, func() error {
		if got := looks.n.Load() - from; got < times {
			return fmt.Errorf("%d looks at the leases, want %d", got, times)
		}
		return nil
	})
}
