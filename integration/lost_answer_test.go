package integration

import (
	"testing"
	"time"
)

// TestLostClaim: the network loses the answer to a claim. The relay asks again under the same lease, so each message is
// sent once, nothing lapses, and no lease is left that nobody knows of.
func TestLostClaim(t *testing.T) {
	onServers(t, func(t *testing.T, e engine) {
		s := newSpine(t, e, 4*time.Second)
		s.loseClaim(t, s.url, nil)
	})
	t.Run("the answer to its COMMIT, through a pooler", func(t *testing.T) {
		t.Parallel()
		s := newSpine(t, postgresEngine(), 4*time.Second)
		s.loseClaim(t, s.pooled(t), commits(toClient, claimStatement), "database: {pooler: transaction}")
	})
}

// loseClaim runs a relay on that server, waits for a claim that brings messages, and loses what matches after that; nil
// loses the claim's own answer.
func (s *spine) loseClaim(t *testing.T, server string, after func(part) bool, lines ...string) {
	t.Helper()
	s.watcher(t)
	database, url := s.proxy(t, server)
	s.relay(t, "asker", at{url, brokers(t)[0]}, lines...)
	s.waitAlive(t, "asker")

	claim := database.hold(s.said.claimed)
	n := scale(300)
	s.insertOdd(t, n)
	claim.wait(t)
	if after == nil {
		claim.cut()
	} else {
		lost := database.cutOne(after)
		claim.release()
		lost.wait(t)
	}
	s.waitDone(t, n)
	expectTimes(t, s.delivered(t), n, 1, 1)
	s.expect(t, n, "SELECT count(*) FROM outbox WHERE attempts = 1 AND lapses = 0 AND NOT {unknown}")
	s.expect(t, 0, "SELECT count(*) FROM outbox_attempt")
	s.expect(t, 1, "SELECT count(DISTINCT lease_id) FROM outbox")
	s.waitCount(t, patience, 0, "SELECT count(*) FROM outbox_lease")
}
