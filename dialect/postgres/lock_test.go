package postgres

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// TestIsReadCommitted claims and settles from several relays at once in a database whose default is REPEATABLE
// READ, where one claim in five would fail: no error, and no message taken twice.
func TestIsReadCommitted(t *testing.T) {
	t.Parallel()
	for name, pooler := range map[string]bool{"direct": false, "pooler": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const messages = 4000
			b := newServer(t, pooler, "default_transaction_isolation = 'repeatable read'").backend(t)
			b.fill(t, orders, messages, 20)
			var mu sync.Mutex
			taken := map[string]bool{}
			var relays sync.WaitGroup
			for _, name := range []string{"a", "b", "c", "d"} {
				p := b.postgres(name)
				relays.Go(func() {
					for {
						claims, err := p.Claim(t.Context(), testLeaseID(), time.Minute, []relay.Quota{testQuota(20)})
						if err != nil {
							t.Errorf("Claim: %v", err)
							return
						}
						if len(claims) == 0 {
							return
						}
						if back, err := p.Settle(t.Context(), settleDone(claims)); err != nil || len(back) > 0 {
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
}

// TestLockedRowDelaysItselfOnly holds one row of a batch in another session. While the settlement waits for it a
// renewal goes through; then the others are written.
func TestLockedRowDelaysItselfOnly(t *testing.T) {
	t.Parallel()
	b := newServer(t, false).backend(t)
	p := b.postgres("a")
	b.fill(t, orders, 500, 20)
	claims := claim(t, p, testQuota(500))
	unlock := b.Lock(claims[250].ID)
	settled := make(chan []relay.Unsettled, 1)
	go func() {
		back, err := p.Settle(t.Context(), settleDone(claims))
		if err != nil {
			t.Errorf("Settle: %v", err)
		}
		settled <- back
	}()
	eventually(t, "the settlement to wait for the lock", func() bool {
		var waiting []int
		b.read(&waiting, "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
		return len(waiting) > 0
	})
	if lost, err := p.Renew(t.Context(), []relay.LeaseID{claims[0].Lease}); err != nil || len(lost) > 0 {
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
	b.read(&done, "SELECT count(*) FROM outbox WHERE state = 'done'")
	if done[0] != 499 {
		t.Errorf("%d messages are done, want 499", done[0])
	}
	unlock()
	if back, err := p.Settle(t.Context(), settleDone(claims[250:251])); err != nil || len(back) > 0 {
		t.Errorf("Settle of the unlocked message gave back %v, %v", back, err)
	}
}

// TestSettlementsDoNotDeadlock settles the same messages twice at once, in opposite orders, while the leases are
// renewed and one of them is taken and moved. Each message is written once, and nothing fails.
func TestSettlementsDoNotDeadlock(t *testing.T) {
	t.Parallel()
	b := newServer(t, false).backend(t)
	one, two, other := b.postgres("a"), b.postgres("a"), b.postgres("b")
	for round := range 20 {
		b.Insert(slices.Repeat([]relaytest.Seed{{Type: orders}}, 200)...)
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
		settle := func(p *Store, s []relay.Settlement) {
			if _, err := p.Settle(t.Context(), s); err != nil {
				t.Errorf("round %d: Settle: %v", round, err)
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
		b.read(&attempts, `SELECT count(*) FROM outbox_attempt GROUP BY message_id HAVING count(*) > 1`)
		if len(attempts) > 0 {
			t.Fatalf("round %d: %d messages have two attempts", round, len(attempts))
		}
		var inFlight []string
		b.read(&inFlight, "SELECT id FROM outbox WHERE state = 'in_flight'")
		if len(inFlight) > 0 {
			t.Fatalf("round %d: %d messages were left in flight", round, len(inFlight))
		}
	}
}

// reclaim takes a lease as it stands and moves what is under it, until nothing is left or the lease is not to be had.
func reclaim(t testing.TB, p *Store, lease relay.LeaseID) {
	t.Helper()
	_, leases, err := p.Watch(t.Context())
	if err != nil {
		t.Errorf("Watch: %v", err)
	}
	for _, l := range leases {
		if l.ID != lease {
			continue
		}
		was, ok, err := p.Take(t.Context(), l)
		if err != nil {
			t.Errorf("Take: %v", err)
		}
		for left := ok; left; {
			if _, left, err = p.Move(t.Context(), lease, was); err != nil {
				t.Errorf("Move: %v", err)
				return
			}
		}
	}
}

// TestWatchShowsALostConnection ends the session of the watch: no look after it may seem to go on from one before.
func TestWatchShowsALostConnection(t *testing.T) {
	t.Parallel()
	b := newServer(t, false).backend(t)
	p := b.postgres("a")
	before := era(t, p)
	if again := era(t, p); again != before {
		t.Fatalf("two looks have the eras %q and %q", before, again)
	}
	b.exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1 AND query LIKE '%pg_postmaster_start_time%'", userOf(t, b.options.URL))
	if after := era(t, p); after == before {
		t.Errorf("the era is %q still", after)
	}
}

// era is that of the next look that has an answer.
func era(t testing.TB, p *Store) (era string) {
	t.Helper()
	eventually(t, "a look at the leases", func() bool {
		var err error
		era, _, err = p.Watch(t.Context())
		return err == nil
	})
	return era
}

// TestGoesOnAfterLostConnections ends all sessions of a relay, as a restart of the server does.
func TestGoesOnAfterLostConnections(t *testing.T) {
	t.Parallel()
	for name, pooler := range map[string]bool{"direct": false, "pooler": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newServer(t, pooler).backend(t)
			p := b.postgres("a")
			for range 3 {
				b.fill(t, orders, 1, 20)
				var claims []relay.Claim
				lease := testLeaseID()
				eventually(t, "a claim", func() bool {
					var err error
					claims, err = p.Claim(t.Context(), lease, time.Minute, []relay.Quota{testQuota(10)})
					return err == nil
				})
				if len(claims) != 1 {
					t.Fatalf("%d messages were claimed, want 1", len(claims))
				}
				eventually(t, "a settlement", func() bool {
					back, err := p.Settle(t.Context(), settleDone(claims))
					return err == nil && len(back) == 0
				})
				b.exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", userOf(t, b.options.URL))
			}
		})
	}
}

// TestClaimAgainWhileTheFirstRuns cuts a relay off from a claim that the server is still at work on. Asked again,
// it answers what the first one took.
func TestClaimAgainWhileTheFirstRuns(t *testing.T) {
	t.Parallel()
	for name, commit := range map[string]bool{"and commits": true, "and rolls back": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newServer(t, false).backend(t)
			p := b.postgres("a")
			b.fill(t, orders, 3, 20)
			lease := testLeaseID()
			first, err := p.work.pool.Beginx()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := first.Exec(p.work.queries["claim"], "{orders}", "{0}", "{10}", "{-infinity}", 60_000_000, "a", int64(lease), ""); err != nil {
				t.Fatal(err)
			}
			p.unanswered.Add(lease, time.Now().Add(time.Minute))
			quotas := []relay.Quota{testQuota(10)}
			if claims, err := p.Claim(t.Context(), lease, time.Minute, quotas); dialect.ClassOf(err) != dialect.Locked {
				t.Fatalf("while the first claim runs, the second gives %+v, %v, want a lock time-out", claims, err)
			}
			end(t, first, commit)
			if claims, err := p.Claim(t.Context(), lease, time.Minute, quotas); err != nil || len(claims) != 3 {
				t.Errorf("the claim gave %d messages, %v, want 3, whoever took them", len(claims), err)
			}
		})
	}
}

// TestFenceStopsALateClaim lets a claim come to the server after its relay was told that it took nothing.
func TestFenceStopsALateClaim(t *testing.T) {
	t.Parallel()
	b := newServer(t, false).backend(t)
	p := b.postgres("a")
	lease := testLeaseID()
	p.unanswered.Add(lease, time.Now().Add(time.Minute))
	quotas := []relay.Quota{testQuota(10)}
	if claims, err := p.Claim(t.Context(), lease, time.Minute, quotas); err != nil || len(claims) > 0 {
		t.Fatalf("Claim gave %+v, %v, want nothing", claims, err)
	}
	b.fill(t, orders, 3, 20)
	_, err := p.work.exec(t.Context(), "claim", "{orders}", "{0}", "{10}", "{-infinity}", 60_000_000, "a", int64(lease), "")
	if dialect.ClassOf(err) != dialect.Duplicate {
		t.Errorf("the late claim gives %v, want that its lease exists", err)
	}
	if claims := claim(t, p, testQuota(10)); len(claims) != 3 {
		t.Errorf("the next claim gave %d messages, want 3", len(claims))
	}
}

// TestCutConnectionIsAnError sees that the end of a stream is no bare EOF, at which database/sql would send a claim
// again behind the Store's back.
func TestCutConnectionIsAnError(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if theirs, err := listener.Accept(); err == nil {
			_ = theirs.Close()
		}
		_ = listener.Close()
	}()
	ours, err := dialer{patience: time.Minute}.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ours.Close() }()
	_, err = ours.Read(make([]byte, 1))
	var fault *net.OpError
	if !errors.As(err, &fault) || errors.Is(err, io.EOF) {
		t.Errorf("the error is %v, want one of the network", err)
	}
}
