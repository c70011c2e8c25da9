package integration

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/outboxd/outboxd/outbox"
)

// TestLockedRow: somebody's session locks one message in flight and one that is due, for a minute. These two wait; all
// others are settled, new ones pass, and the lease is renewed: another relay, which watches it, takes nothing over.
func TestLockedRow(t *testing.T) {
	onServers(t, lockedRow)
}

func lockedRow(t *testing.T, e engine) {
	s := newSpine(t, e, 3*time.Second)
	psql := s.session(t)
	due := psql.lock(t, s.write(t, outbox.Message{Type: "order_paid"})[0])

	broker := newKafkaProxy(t)
	s.relay(t, "sender", at{s.url, broker.address()})
	s.waitAlive(t, "sender")
	sending := broker.hold(responses("Produce"))
	n := scale(300)
	s.insertOdd(t, n)
	s.waitCount(t, patience, n, "SELECT count(*) FROM outbox WHERE state = 'in_flight'")
	inFlight := psql.lock(t, s.texts(t, "SELECT id FROM outbox WHERE state = 'in_flight' ORDER BY seq LIMIT 1 OFFSET $1", n/2)[0])
	until := time.Now().Add(scaleDuration(time.Minute))
	sending.release()
	s.waitCount(t, patience, n-1, "SELECT count(*) FROM outbox WHERE state = 'done'")
	s.watcher(t)

	renewals := map[string]bool{}
	var slowest time.Duration
	done := n - 1
	for time.Now().Before(until) || len(renewals) < 4 && time.Now().Before(until.Add(patience)) {
		began := time.Now()
		s.exec(t, "INSERT INTO outbox (type) VALUES ('order_paid')")
		done++
		s.waitCount(t, patience, done, "SELECT count(*) FROM outbox WHERE state = 'done'")
		slowest = max(slowest, time.Since(began))
		renewals[s.texts(t, "SELECT l.renewed_at FROM outbox_lease l JOIN outbox o ON o.lease_id = l.lease_id WHERE o.id = $1", inFlight)[0]] = true
		<-time.After(50 * time.Millisecond)
	}
	t.Logf("%d messages passed, the slowest in %s; the lease was seen renewed %d times",
		done-n+1, slowest.Round(time.Millisecond), len(renewals)-1)
	if len(renewals) < 4 {
		t.Errorf("the lease of the locked message was seen with %d different renewed_at", len(renewals))
	}
	s.expectState(t, due, "pending")
	s.expectState(t, inFlight, "in_flight")

	psql.end(t)
	s.waitDone(t, done+2)
	expectTimes(t, s.delivered(t), done+2, 1, 1)
	s.expect(t, 0, "SELECT count(*) FROM outbox WHERE attempts <> 1 OR {unknown}")
	s.expect(t, 0, "SELECT count(*) FROM outbox_attempt")
}

func (s *spine) expectState(t *testing.T, id, want string) {
	t.Helper()
	if got := s.texts(t, "SELECT state FROM outbox WHERE id = $1", id)[0]; got != want {
		t.Errorf("the locked message %s is %s, want %s", id, got, want)
	}
}

// session is a transaction that somebody forgot to end.
type session struct {
	*sql.Tx
	engine
}

func (s *spine) session(t *testing.T) session {
	t.Helper()
	tx, err := s.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
			t.Error(err)
		}
	})
	return session{tx, s.engine}
}

// lock locks a message and returns its id.
func (s session) lock(t *testing.T, id string) string {
	t.Helper()
	if _, err := s.ExecContext(t.Context(), s.sql("SELECT 1 FROM outbox WHERE id = $1 FOR UPDATE"), id); err != nil {
		t.Fatal(err)
	}
	return id
}

func (s session) end(t *testing.T) {
	t.Helper()
	if err := s.Rollback(); err != nil {
		t.Fatal(err)
	}
}
