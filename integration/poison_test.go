package integration

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

// TestPoison: one message ends the relay each time that it is sent. It ends failed(lease_lost) after four lapses; those
// that were sent or claimed beside it lapse twice at most, and are done.
func TestPoison(t *testing.T) {
	onEngines(t, poison)
}

func poison(t *testing.T, e engine) {
	s := newSpine(t, e, 2*time.Second)
	broker := newKafkaProxy(t)
	produce := requests("Produce")
	deadly := func(one part) bool { return produce(one) && bytes.Contains(one.data, []byte("poison")) }
	const poisoned = "SELECT count(*) FROM outbox WHERE type = 'poison' AND state = 'failed'"

	good, kills := 0, 0
	insert := func(n int) {
		s.insertOdd(t, n)
		good += n
	}
	insert(scale(1000))
	s.exec(t, `INSERT INTO outbox (aggregatetype, type, payload) VALUES ('order_paid', 'poison', 'poison')`)
	insert(scale(1000))
	for kills < 5 {
		held := broker.hold(deadly)
		p := s.relay(t, "restarted", at{s.url, broker.address()})
		eventually(t, 5*patience, func() error { // those that lapsed twice beside it go before it, one by one
			select {
			case <-held.caught:
				return nil
			default:
			}
			if s.count(t, poisoned) == 0 {
				return errors.New("the message is neither sent nor failed")
			}
			return nil
		})
		if s.count(t, poisoned) == 1 {
			break // and this relay lives on
		}
		p.kill(t)
		held.cut()
		kills++
		insert(scale(100))
	}
	s.waitCount(t, patience, good, "SELECT count(*) FROM outbox WHERE state = 'done'")
	t.Logf("%d good messages done, %d kills", good, kills)
	if kills != 4 {
		t.Errorf("it was sent %d times, want 4", kills)
	}

	s.expect(t, 1, `SELECT count(*) FROM outbox WHERE type = 'poison' AND state = 'failed' AND reason = 'lease_lost'
		AND attempts = 0 AND lapses = 4`)
	s.expect(t, 1, "SELECT count(*) FROM outbox WHERE state <> 'done'")
	s.expect(t, 4, `SELECT count(*) FROM outbox_attempt a JOIN outbox o ON o.id = a.message_id
		WHERE o.type = 'poison' AND a.outcome = 'lapse'`)
	s.expect(t, 0, `SELECT count(*) FROM (SELECT 1 FROM outbox_attempt a JOIN outbox o ON o.id = a.message_id
		WHERE o.type <> 'poison' GROUP BY o.id HAVING count(*) > 2) AS often`)
	if delivered := s.delivered(t); len(delivered) != good {
		t.Errorf("%d messages are in the topic, want the %d good ones", len(delivered), good)
	}
}
