package mysql

import (
	"slices"
	"sync"
	"testing"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// settleTold are settlements of done messages of which the application is told.
func settleTold(claims []relay.Claim) []relay.Settlement {
	settlements := make([]relay.Settlement, len(claims))
	for i, c := range claims {
		policy := relay.Policy{Emit: relay.Emit{Type: "told"}}
		settlements[i] = relay.Decide(relay.Try{Claim: c, Outcome: relay.Done("3@1234567"), Policy: policy})
	}
	return settlements
}

// TestInsertWaitsForNoTelling lets applications insert, and another relay claim, beside a transaction that has told of its
// messages and is not at its end: no lock of an INSERT from a SELECT lasts so long.
func TestInsertWaitsForNoTelling(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		s := b.store("a")
		b.fill(t, orders, 1000, 20)
		batch, err := sorted(settleTold(claim(t, s, testQuota(500))))
		if err != nil {
			t.Fatal(err)
		}
		tx, err := s.work.pool.Beginx()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback() }) // where the test has not ended it
		on := session{tx, s.work.queries}
		if free, err := lock(t.Context(), on, pairs(batch)); err != nil || len(free) != 500 {
			t.Fatalf("%d messages are locked, %v", len(free), err)
		}
		for _, step := range []struct{ query, rows string }{{"settle", settleRows(batch)}, {"tell", tellRows(batch).String()}} {
			if n, err := on.exec(t.Context(), step.query, step.rows); err != nil || n != 500 {
				t.Fatalf("%s: %d rows, %v", step.query, n, err)
			}
		}
		for _, isolation := range []string{"REPEATABLE READ", "SERIALIZABLE", "READ COMMITTED"} {
			if err := b.insertAt(t, isolation); err != nil {
				t.Errorf("INSERT at %s beside a telling: %v", isolation, err)
			}
		}
		if claims := claim(t, b.store("b"), testQuota(100)); len(claims) != 100 {
			t.Errorf("a claim beside a telling took %d messages, want 100", len(claims))
		}
		end(t, tx, true)
	})
}

// TestTellingsDoNotDeadlock tells from two relays while applications insert and a third relay takes what tells: nothing
// fails, and each message is told of once.
func TestTellingsDoNotDeadlock(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		const messages = 2000
		b.fill(t, orders, messages, 20)
		var group sync.WaitGroup
		work := func(s *Store, quota relay.Quota, rounds int, settle func([]relay.Claim) []relay.Settlement) {
			for range rounds {
				claims, err := s.Claim(t.Context(), testLeaseID(), b.options.Lease, []relay.Quota{quota})
				if err == nil {
					_, err = s.Settle(t.Context(), settle(claims))
				}
				if err != nil {
					t.Errorf("relay %s: %v", s.relay, err)
					return
				}
			}
		}
		for _, name := range []string{"a", "b"} {
			s := b.store(name)
			group.Go(func() { work(s, testQuota(50), messages/50, settleTold) })
		}
		teller := b.store("c")
		group.Go(func() { work(teller, relay.Quota{RoutingKey: "told", Limit: 50}, 60, settleDone) })
		group.Go(func() {
			for range 20 {
				if err := b.insertAt(t, "REPEATABLE READ"); err != nil {
					t.Errorf("an application's INSERT: %v", err)
				}
			}
		})
		group.Wait()
		var twice []int
		b.read(&twice, "SELECT COUNT(*) FROM outbox WHERE type = 'told' GROUP BY JSON_VALUE(CONVERT(payload USING utf8mb4), '$.id') HAVING COUNT(*) <> 1")
		var counts []int
		b.read(&counts, "SELECT COUNT(*) FROM outbox WHERE type = 'told' UNION ALL SELECT COUNT(*) FROM outbox WHERE type <> 'told' AND state = 'done'")
		if len(twice) > 0 || len(counts) != 2 || counts[0] != counts[1] || counts[0] < messages {
			t.Errorf("%d messages are told of more than once; told of are %v, those that are done", len(twice), counts)
		}
	})
}

// TestRefusedTellingDelaysItselfOnly has a trigger of the application's that refuses one of the messages that tell.
func TestRefusedTellingDelaysItselfOnly(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		s := b.store("a")

		ids := b.Insert(slices.Concat(slices.Repeat([]relaytest.Seed{{Type: orders}}, 10), []relaytest.Seed{{Type: orders, AggregateID: new("7")}})...)
		b.exec(t, `CREATE TRIGGER refuse BEFORE INSERT ON outbox FOR EACH ROW
			IF NEW.type = 'told' AND NEW.aggregateid = '7' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END IF`)
		settlements := settleTold(claim(t, s, testQuota(20)))
		for range 2 {
			back, err := s.Settle(t.Context(), settlements)
			if err != nil || len(back) != 1 || back[0].Why != relay.Refused || back[0].Row().ID != ids[10] {
				t.Errorf("Settle gives %v, %v, want the one whose telling is refused", back, err)
			}
		}
		b.exec(t, "DROP TRIGGER refuse")
		if back, err := s.Settle(t.Context(), settlements); err != nil || len(back) > 0 {
			t.Errorf("without the trigger Settle gives %v, %v", back, err)
		}
		var told []int
		if b.read(&told, "SELECT COUNT(*) FROM outbox WHERE type = 'told'"); told[0] != len(ids) {
			t.Errorf("%d messages tell, want %d", told[0], len(ids))
		}
	})
}
