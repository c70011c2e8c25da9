package integration

import (
	"bytes"
	"testing"
	"time"
)

// insertOdd writes n messages in one statement: with a key and without, text and bytes, headers of their own.
func (s *spine) insertOdd(t *testing.T, n int) {
	t.Helper()
	s.exec(t, `INSERT INTO outbox (type, aggregateid, payload, payload_bytes, headers, traceparent)
		SELECT 'order_paid', CASE WHEN n % 3 > 0 THEN 'order-' || n % 5 END,
			CASE WHEN n % 2 = 0 THEN '{"n": ' || n || ', "price": 1.10, "name": "Zoë"}' END,
			CASE WHEN n % 2 = 1 THEN decode('00ff0a' || lpad(to_hex(n), 8, '0'), 'hex') END,
			'{"tenant": "t' || n % 4 || '"}', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
		FROM generate_series(1, $1::int) AS n`, n)
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

func moments() []moment {
	return []moment{
		{name: "claimed", database: claims},
		{name: "loaded", database: answers(loadStatement)},
		{name: "in the send", broker: requests("Produce")},
		{name: "sent and not acknowledged", broker: responses("Produce"), written: some},
		{name: "acknowledged and not settled", database: asks(settleStatement), written: all},
	}
}

// claims matches the answer to a claim that brought messages: not the check of its plan, and not a look in vain.
func claims(one part) bool {
	return answers(claimStatement)(one) && bytes.Contains(one.data, []byte("UPDATE ")) && !bytes.Contains(one.data, []byte("UPDATE 0\x00"))
}

// reach starts a relay and brings it, with n messages in flight, to that moment.
func (s *spine) reach(t *testing.T, m moment, name string, n int) (*process, *trap) {
	t.Helper()
	database, url := newPostgresProxy(t, s.url)
	broker := newKafkaProxy(t)
	var held *trap
	if m.database != nil {
		held = database.hold(m.database)
	} else {
		held = broker.hold(m.broker)
	}
	p := s.relay(t, name, at{url, broker.address()})
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
	t.Parallel()
	for _, m := range moments() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			const lease = 2 * time.Second
			n := scale(300)
			s := newSpine(t, lease)
			victim, held := s.reach(t, m, "victim", n)
			s.relay(t, "survivor", s.straight(t))
			s.waitAlive(t, "survivor")

			victim.kill(t)
			killed := time.Now()
			held.cut()
			s.waitDone(t, n)
			took := time.Since(killed)
			t.Logf("%d messages done %s after the kill", n, took.Round(time.Millisecond))
			if limit := lease + lease/3 + 2*time.Second; bounds() && took > limit {
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
			s.expect(t, n, "SELECT count(*) FROM outbox WHERE attempts = 1 AND lapses = 0 AND unknown_since IS NOT NULL")
			s.expect(t, n, "SELECT count(*) FROM outbox_attempt WHERE outcome = 'lapse' AND relay = 'victim'")
		})
	}
}
