package integration

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/outboxd/outboxd/outbox"
	"github.com/outboxd/outboxd/relay"
)

// TestS02_ExactlyTheCommitted: writers whose transactions overlap, linger before their COMMIT and roll back a third of the
// time, and two relays. What was committed is in the topic once, and nothing else.
func TestS02_ExactlyTheCommitted(t *testing.T) {
	onEngines(t, exactlyTheCommitted)
}

func exactlyTheCommitted(t *testing.T, e engine) {
	const writers = 4
	s := newSpine(t, e, relay.DefaultLease)
	for _, name := range []string{"first", "second"} {
		s.relay(t, name, s.straight(t))
		s.waitAlive(t, name)
	}

	n := scale(20_000)
	committed := make([][]string, writers)
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for round := 0; len(committed[w]) < n/writers && !t.Failed(); round++ {
				ids := s.transaction(t, w, round, min(5, n/writers-len(committed[w])))
				committed[w] = append(committed[w], ids...)
			}
		})
	}
	writing.Wait()
	s.waitDone(t, n)

	delivered := s.delivered(t)
	expectTimes(t, delivered, n, 1, 1)
	for w := range writers {
		for _, id := range committed[w] {
			if delivered[id] == 0 {
				t.Errorf("message %s was committed and is not in the topic", id)
			}
		}
	}
	s.expect(t, n, "SELECT count(*) FROM outbox WHERE attempts = 1 AND lapses = 0 AND lease_id > 0")
	s.expect(t, 0, "SELECT count(*) FROM outbox_attempt")
	t.Logf("%d messages, %d leases", n, s.count(t, "SELECT count(DISTINCT lease_id) FROM outbox"))
}

// transaction is one of a writer. It returns the ids that were committed: every third round rolls back.
func (s *spine) transaction(t *testing.T, writer, round, size int) []string {
	tx, err := s.BeginTx(t.Context(), nil)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer tx.Rollback()
	messages := make([]outbox.Message, size)
	for i := range messages {
		messages[i] = outbox.Message{
			AggregateType: fmt.Sprintf("kind_%d", round%3), AggregateID: fmt.Sprintf("%d-%d", writer, round%50), Type: "changed",
			Payload: fmt.Appendf(nil, `{"writer": %d, "round": %d, "n": %d}`, writer, round, i),
		}
	}
	ids, err := outbox.Table{Dialect: s.helper}.Write(t.Context(), tx, messages...)
	if err == nil && round%7 == 0 {
		time.Sleep(rand.N(50 * time.Millisecond)) //nolint:forbidigo // the application's other work, no waiting of the test
	}
	if err == nil && round%3 == 2 {
		err, ids = tx.Rollback(), nil
	} else if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	return ids
}
