package mysql

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// openClaim makes a claim as the Store does, and leaves its transaction open until end is called.
func openClaim(t testing.TB, s *Store, lease relay.LeaseID, quota relay.Quota) (claims []relay.Claim, tx *sqlx.Tx) {
	t.Helper()
	tx, err := s.work.pool.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // where the test has not ended it
	on := session{tx, s.work.queries}
	if err := s.due(t.Context(), on, quota, readClaims(&claims, lease)); err != nil {
		t.Fatal(err)
	}
	claims = bySeq(claims)
	ids := list[int64](seqs(claims)).String()
	for _, step := range []struct {
		query     string
		arguments []any
	}{
		{"claim_lease", []any{int64(lease), s.relay, int64(60_000_000), ids, ""}},
		{"claim_take", []any{ids, int64(lease)}},
	} {
		if _, err := on.exec(t.Context(), step.query, step.arguments...); err != nil {
			t.Fatal(err)
		}
	}
	return claims, tx
}

// end commits or rolls back.
func end(t testing.TB, tx *sqlx.Tx, commit bool) {
	t.Helper()
	act := tx.Rollback
	if commit {
		act = tx.Commit
	}
	if err := act(); err != nil {
		t.Error(err)
	}
}

// TestSecondWorkerGetsTheNext claims while another claim is open: just the messages that follow, since nothing beyond the
// first one's limit is locked.
func TestSecondWorkerGetsTheNext(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		id := b.Insert(slices.Repeat([]relaytest.Seed{{Type: orders}}, 100)...)
		first, tx := openClaim(t, b.store("a"), testLeaseID(), testQuota(10))
		second := claim(t, b.store("b"), testQuota(10))
		if !slices.Equal(claimIDs(first), id[:10]) || !slices.Equal(claimIDs(second), id[10:20]) {
			t.Errorf("the first claim took %v, the second %v, want the first ten and the next ten", claimIDs(first), claimIDs(second))
		}
		end(t, tx, true)
	})
}

// TestInsertWaitsForNoClaim lets applications insert while a claim is open, on an empty and on a full table, at the isolation
// levels that a server's default may be. Their lock time-out is a second, the shortest there is: who waits fails.
func TestInsertWaitsForNoClaim(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		s := b.store("a")
		for _, rows := range []int{0, 1000} {
			b.fill(t, orders, rows, 20)
			for _, limit := range []int{1, 500, 2000} {
				claims, tx := openClaim(t, s, testLeaseID(), testQuota(limit))
				for _, isolation := range []string{"REPEATABLE READ", "SERIALIZABLE", "READ COMMITTED"} {
					if err := b.insertAt(t, isolation); err != nil {
						t.Errorf("INSERT at %s beside a claim of %d of %d: %v", isolation, len(claims), rows, err)
					}
				}
				end(t, tx, false)
			}
		}
	})
}

// TestLeasesWaitForNoClaim renews, finishes, watches and takes leases while a claim is open, whose lease row nobody may read
// or lock yet.
func TestLeasesWaitForNoClaim(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		s, other := b.store("a"), b.store("b")
		b.fill(t, orders, 4, 20)
		kept, finished := claim(t, s, testQuota(1))[0].Lease, claim(t, s, testQuota(1))[0].Lease
		openClaim(t, other, testLeaseID(), testQuota(1))
		if lost, err := s.Renew(t.Context(), []relay.LeaseID{kept, finished, testLeaseID()}); err != nil || len(lost) != 1 {
			t.Errorf("Renew lost %v, %v, want the lease that never was", lost, err)
		}
		if err := s.Finish(t.Context(), []relay.LeaseID{finished, testLeaseID()}); err != nil {
			t.Errorf("Finish: %v", err)
		}
		reclaim(t, other, kept)
		if leases := b.Leases(); len(leases) != 1 || leases[0].Relay != "b" {
			t.Errorf("the leases are %+v, want one that b took", leases)
		}
	})
}

// insertAt inserts messages before, between and behind those that are there, in the order of the claim's index.
func (b backend) insertAt(t testing.TB, isolation string) error {
	conn, err := b.db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, statement := range []string{
		"SET SESSION TRANSACTION ISOLATION LEVEL " + isolation,
		"SET SESSION innodb_lock_wait_timeout = 1",
		"INSERT INTO outbox (type) VALUES ('" + orders + "'), ('a'), ('z')",
		"INSERT INTO outbox (type, due_at) VALUES ('" + orders + "', UTC_TIMESTAMP(6) - INTERVAL 1 HOUR), ('" + orders + "', UTC_TIMESTAMP(6) + INTERVAL 1 HOUR)",
	} {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			return err
		}
	}
	return nil
}

// TestIsReadCommitted claims and settles from several relays at once while applications insert at the server's default, and
// reads the level of every connection: no error, and no message taken twice.
func TestIsReadCommitted(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		const messages = 4000
		b.fill(t, orders, messages, 20)
		var mu sync.Mutex
		taken := map[string]bool{}
		var relays sync.WaitGroup
		for _, name := range []string{"a", "b", "c", "d"} {
			s := b.store(name)
			relays.Go(func() {
				for {
					claims, err := s.Claim(t.Context(), testLeaseID(), time.Minute, []relay.Quota{testQuota(20)})
					if err != nil {
						t.Errorf("Claim: %v", err)
						return
					}
					if len(claims) == 0 {
						return
					}
					if back, err := s.Settle(t.Context(), settleDone(claims)); err != nil || len(back) > 0 {
						t.Errorf("Settle gave back %d, %v", len(back), err)
					}
					mu.Lock()
					for _, c := range claims {
						if taken[c.ID] {
							t.Errorf("message %s was claimed twice", c.ID)
						}
						taken[c.ID] = true
					}
					mu.Unlock()
				}
			})
		}
		relays.Wait()
		if len(taken) != messages {
			t.Errorf("%d messages were claimed, want %d", len(taken), messages)
		}
	})
}

// TestRenewalWithinOneTick renews twice at the same moment of the database's clock: the second changes nothing, and no lease
// is lost.
func TestRenewalWithinOneTick(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		s := b.store("a")
		b.fill(t, orders, 1, 20)
		lease := claim(t, s, testQuota(1))[0].Lease
		s.keep.pool.SetMaxOpenConns(1) // whose session's clock stands still
		if _, err := s.keep.pool.Exec("SET timestamp = 1900000000.5"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if lost, err := s.Renew(t.Context(), []relay.LeaseID{lease}); err != nil || len(lost) > 0 {
				t.Errorf("Renew lost %v, %v", lost, err)
			}
		}
		if renewed, err := s.keep.exec(t.Context(), "renew", list[relay.LeaseID]{lease}.String(), "a"); err != nil || renewed != 1 {
			t.Errorf("a renewal that changes nothing found %d leases, %v, want 1", renewed, err)
		}
	})
}

// TestLockedRowDelaysItselfOnly holds one row of a batch in another session. While the settlement waits for it a renewal
// goes through; then the others are written.
func TestLockedRowDelaysItselfOnly(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		s := b.store("a")
		b.fill(t, orders, 500, 20)
		claims := claim(t, s, testQuota(500))
		unlock := b.Lock(claims[250].ID)
		settled := make(chan []relay.Unsettled, 1)
		go func() {
			back, err := s.Settle(t.Context(), settleDone(claims))
			if err != nil {
				t.Errorf("Settle: %v", err)
			}
			settled <- back
		}()
		eventually(t, "the settlement to be under way", func() bool {
			var waiting []int
			b.read(&waiting, "SELECT 1 FROM information_schema.PROCESSLIST WHERE DB = ? AND INFO LIKE '%UPDATE JSON_TABLE%'", b.schema)
			return len(waiting) > 0
		})
		if lost, err := s.Renew(t.Context(), []relay.LeaseID{claims[0].Lease}); err != nil || len(lost) > 0 {
			t.Errorf("Renew gave %v, %v", lost, err)
		}
		select {
		case <-settled:
			t.Error("the settlement ended before the renewal: it did not wait")
		default:
		}
		back := <-settled
		if len(back) != 1 || back[0].Row().ID != claims[250].ID || back[0].Why != relay.Locked {
			t.Errorf("Settle gave back %+v, want the locked message alone", back)
		}
		var done []int
		b.read(&done, "SELECT COUNT(*) FROM outbox WHERE state = 'done'")
		if done[0] != 499 {
			t.Errorf("%d messages are done, want 499", done[0])
		}
		unlock()
		if back, err := s.Settle(t.Context(), settleDone(claims[250:251])); err != nil || len(back) > 0 {
			t.Errorf("Settle of the unlocked message gave back %v, %v", back, err)
		}
	})
}

// TestSettlementsDoNotDeadlock settles the same messages twice at once, in opposite orders, while the leases are renewed and
// one of them is taken and moved. Each message is written once, and nothing fails; nor did the server find a deadlock.
func TestSettlementsDoNotDeadlock(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		one, two, other := b.store("a"), b.store("a"), b.store("b")
		for round := range 10 {
			b.fill(t, orders, 200, 20)
			claims := append(claim(t, one, testQuota(100)), claim(t, one, testQuota(100))...)
			var settlements []relay.Settlement
			for i, c := range claims {
				outcome := relay.Done("")
				if i%2 == 0 {
					outcome = relay.Fail(relay.Rejected, "invalid", "no")
				}
				settlements = append(settlements, relay.Decide(relay.Try{Claim: c, Outcome: outcome}))
			}
			reversed := slices.Clone(settlements)
			slices.Reverse(reversed)
			var group sync.WaitGroup
			settle := func(s *Store, settlements []relay.Settlement) {
				for left := settlements; len(left) > 0; {
					back, err := s.Settle(t.Context(), left)
					if err != nil {
						t.Errorf("round %d: Settle: %v", round, err)
						return
					}
					left = nil
					for _, u := range back {
						if u.Why == relay.Locked { // by the other settlement, or the move
							left = append(left, u.Settlement)
						}
					}
				}
			}
			group.Go(func() { settle(one, settlements) })
			group.Go(func() { settle(two, reversed) })
			group.Go(func() {
				if _, err := two.Renew(t.Context(), []relay.LeaseID{claims[199].Lease, claims[0].Lease}); err != nil {
					t.Errorf("round %d: Renew: %v", round, err)
				}
			})
			group.Go(func() { reclaim(t, other, claims[0].Lease) })
			group.Wait()
			var attempts []int
			b.read(&attempts, "SELECT COUNT(*) FROM outbox_attempt GROUP BY message_id HAVING COUNT(*) > 1")
			if len(attempts) > 0 {
				t.Fatalf("round %d: %d messages have two attempts", round, len(attempts))
			}
			var inFlight []string
			b.read(&inFlight, "SELECT id FROM outbox WHERE state = 'in_flight'")
			if len(inFlight) > 0 {
				t.Fatalf("round %d: %d messages were left in flight", round, len(inFlight))
			}
		}
	})
}

// TestSettlementsLockBySeq settles the same messages by the statement that waits for locks, twice at once, given in two
// orders.
func TestSettlementsLockBySeq(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		s := b.store("a")
		for range 20 {
			b.fill(t, orders, 200, 20)
			settlements := settleDone(claim(t, s, testQuota(200)))
			reversed := slices.Clone(settlements)
			slices.Reverse(reversed)
			var group sync.WaitGroup
			for _, given := range [][]relay.Settlement{settlements, reversed} {
				group.Go(func() {
					batch, err := sorted(given)
					if err == nil {
						_, err = doneWriter{writer{s}}.Write(t.Context(), batch)
					}
					if err != nil {
						t.Errorf("settle_done: %v", err)
					}
				})
			}
			group.Wait()
		}
	})
}

// reclaim takes a lease as it stands and moves what is under it, until nothing is left or the lease is not to be had.
func reclaim(t testing.TB, s *Store, lease relay.LeaseID) {
	t.Helper()
	_, leases, err := s.Watch(t.Context())
	if err != nil {
		t.Errorf("Watch: %v", err)
	}
	for _, l := range leases {
		if l.ID != lease {
			continue
		}
		was, ok, err := s.Take(t.Context(), l)
		if err != nil {
			t.Errorf("Take: %v", err)
		}
		for left := ok; left; {
			if _, left, err = s.Move(t.Context(), lease, was); err != nil {
				t.Errorf("Move: %v", err)
				return
			}
		}
	}
}
