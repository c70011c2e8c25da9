package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/outboxd/outboxd/outbox"
)

// insertOdd writes n messages at once: with a key and without, text and bytes, headers of their own.
func (s *spine) insertOdd(t *testing.T, n int) {
	t.Helper()
	messages := make([]outbox.Message, n)
	for i := range messages {
		m := outbox.Message{
			Type: "order_paid", Headers: map[string]string{"tenant": fmt.Sprintf("t%d", i%4)},
			Payload:     fmt.Appendf(nil, `{"n": %d, "price": 1.10, "name": "Zoë"}`, i),
			Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		}
		if i%2 == 1 {
			m.Payload = fmt.Appendf(nil, "\x00\xff\n%08x", i)
		}
		if i%3 > 0 {
			m.AggregateID = fmt.Sprintf("order-%d", i%5)
		}
		messages[i] = m
	}
	s.write(t, messages...)
}

// moment is a state of a relay in which the tests kill or freeze it: what a proxy in front of its database or its broker
// holds while the relay is in that state.
type moment struct {
	name     string
	database func(part) bool
	broker   func(part) bool
	written  written
}

// written says which of the messages the broker has by then. A producer sends no further request while it waits for the
// answer to the first.
type written int

const (
	none written = iota
	some
	all
)

func moments(e engine) []moment {
	atBroker := []moment{
		{name: "in the send", broker: requests("Produce")},
		{name: "sent and not acknowledged", broker: responses("Produce"), written: some},
	}
	if e.proxy == nil {
		return atBroker
	}
	return append(atBroker,
		moment{name: "claimed", database: e.said.claimed},
		moment{name: "loaded", database: answers(e.said.load)},
		moment{name: "acknowledged and not settled", database: asks(e.said.settle), written: all},
	)
}

// reach starts a relay and brings it, with n messages in flight, to that moment.
func (s *spine) reach(t *testing.T, m moment, name string, n int) (*process, *trap) {
	t.Helper()
	broker := newKafkaProxy(t)
	way := at{url: s.url, broker: broker.address()}
	var held *trap
	if m.database != nil {
		database, url := s.proxy(t, s.url)
		held, way.url = database.hold(m.database), url
	} else {
		held = broker.hold(m.broker)
	}
	p := s.relay(t, name, way)
	s.waitAlive(t, name)
	s.insertOdd(t, n)
	held.wait(t)
	switch m.written {
	case none:
	case some:
		s.waitRecords(t, 1)
	case all:
		s.waitRecords(t, n)
	}
	s.expect(t, n, "SELECT count(*) FROM outbox WHERE state = 'in_flight'")
	return p, held
}

// TestKill: a relay is killed at each state that can be seen from outside. Every message arrives, and what was sent
// already arrives again alike.
func TestKill(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		for _, m := range moments(e) {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				kill(t, e, m)
			})
		}
	})
}

func kill(t *testing.T, e engine, m moment) {
	n := scale(300)
	s := newSpine(t, e, 2*time.Second)
	victim, held := s.reach(t, m, "victim", n)
	s.relay(t, "survivor", s.straight(t))
	s.waitAlive(t, "survivor")

	victim.kill(t)
	killed := time.Now()
	held.cut()
	s.waitDone(t, n)
	took := time.Since(killed)
	t.Logf("%d messages done %s after the kill", n, took.Round(time.Millisecond))
	if limit := s.lease + s.lease/3 + 2*time.Second; bounds() && took > limit {
		t.Errorf("recovery took %s, want at most %s", took, limit)
	}

	least, most := 1, 1
	if m.written != none {
		most = 2
	}
	if m.written == all {
		least = 2
	}
	expectTimes(t, s.delivered(t), n, least, most)
	s.expect(t, n, "SELECT count(*) FROM outbox WHERE attempts = 1 AND lapses = 0 AND {unknown}")
	s.expect(t, n, "SELECT count(*) FROM outbox_attempt WHERE outcome = 'lapse' AND relay = 'victim'")
}
