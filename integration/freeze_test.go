package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestS06_Freeze: a relay is stopped by SIGSTOP past its lease, another takes over, and the first goes on where it was,
// once while the other has the messages in flight and once when it is done with them. It undoes nothing.
func TestS06_Freeze(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		for _, m := range moments(e) {
			for _, finished := range []bool{false, true} {
				name := m.name + ", the other is in the send"
				if finished {
					name = m.name + ", the other is done"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					freeze(t, e, m, finished)
				})
			}
		}
	})
}

func freeze(t *testing.T, e engine, m moment, finished bool) {
	n := scale(300)
	s := newSpine(t, e, 2*time.Second)
	sleeper, held := s.reach(t, m, "sleeper", n)
	sleeper.freeze(t)

	broker := newKafkaProxy(t)
	sending := broker.hold(responses("Produce"))
	other := s.relay(t, "other", at{s.url, broker.address()})
	s.waitCount(t, patience, n, "SELECT count(*) FROM outbox WHERE state = 'in_flight' AND {unknown}")
	sending.wait(t)
	if finished {
		sending.release()
		s.waitDone(t, n)
	}
	before := s.all(t)
	woken := len(sleeper.stderr.String())
	held.release() // what was on its way arrives now
	sleeper.thaw(t)
	sleeper.waitGivenUp(t, woken, n, m)
	if after := s.all(t); !slices.Equal(before, after) {
		t.Errorf("the relay that woke up changed\n%s\nto\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	if !finished {
		sending.release()
		s.waitDone(t, n)
	}
	if delivered := s.delivered(t); len(delivered) != n {
		t.Errorf("%d messages are in the topic, want %d", len(delivered), n)
	}
	s.expect(t, n, "SELECT count(*) FROM outbox WHERE attempts = 1 AND lapses = 0")
	s.expect(t, n, "SELECT count(*) FROM outbox_attempt WHERE outcome = 'lapse' AND relay = 'sleeper'")

	// It is well, and alone does what is new.
	other.terminate(t)
	s.insertOdd(t, n)
	s.waitDone(t, 2*n)
}

// waitGivenUp waits until the relay that woke up has found out of each of n messages that it is no longer its own. Only a
// claim may have another end: its answer comes too late to be listened to.
func (p *process) waitGivenUp(t *testing.T, from, n int, m moment) {
	t.Helper()
	eventually(t, patience, func() error {
		log := p.stderr.String()[from:]
		lost := strings.Count(log, `"msg":"lease lost","id":`)
		if lost >= n || m.name == "claimed" && strings.Contains(log, `"query":"claim"`) {
			return nil
		}
		return fmt.Errorf("%s, frozen and awake: it says of %d messages that they are lost, want %d", m.name, lost, n)
	})
}
