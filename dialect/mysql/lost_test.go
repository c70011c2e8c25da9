package mysql

import (
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// killSessions ends all sessions of the relays, as a restart of the server does.
func (b backend) killSessions(t testing.TB) {
	t.Helper()
	var sessions []int64
	b.read(&sessions, "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = ?", b.schema)
	for _, id := range sessions {
		const gone = 1094
		if _, err := b.db.Exec("KILL ?", id); err != nil && errorCode(err) != gone {
			t.Fatal(err)
		}
	}
}

// TestWatchShowsALostConnection ends the session of the watch: no look after it may seem to go on from one before.
func TestWatchShowsALostConnection(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		s := b.store("a")
		before := era(t, s)
		if again := era(t, s); again != before {
			t.Fatalf("two looks have the eras %q and %q", before, again)
		}
		b.killSessions(t)
		if after := era(t, s); after == before {
			t.Errorf("the era is %q still", after)
		}
	})
}

// era is that of the next look that has an answer.
func era(t testing.TB, s *Store) (era string) {
	t.Helper()
	eventually(t, "a look at the leases", func() bool {
		var err error
		era, _, err = s.Watch(t.Context())
		return err == nil
	})
	return era
}

// TestGoesOnAfterLostConnections ends all sessions of a relay between its calls.
func TestGoesOnAfterLostConnections(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		s := b.store("a")
		for range 3 {
			b.fill(t, orders, 1, 20)
			var claims []relay.Claim
			lease := testLeaseID()
			eventually(t, "a claim", func() bool {
				var err error
				claims, err = s.Claim(t.Context(), lease, time.Minute, []relay.Quota{testQuota(10)})
				return err == nil
			})
			if len(claims) != 1 {
				t.Fatalf("%d messages were claimed, want 1", len(claims))
			}
			b.killSessions(t)
			eventually(t, "a settlement", func() bool {
				back, err := s.Settle(t.Context(), settleDone(claims))
				return err == nil && len(back) == 0
			})
			b.killSessions(t)
		}
	})
}

// TestClaimAgainWhileTheFirstRuns cuts a relay off from a claim that the server is still at work on. Asked again, it answers
// what the first one took.
func TestClaimAgainWhileTheFirstRuns(t *testing.T) {
	t.Parallel()
	for name, commit := range map[string]bool{"and commits": true, "and rolls back": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachServer(t, func(t *testing.T, b backend) {
				s := b.store("a")
				b.fill(t, orders, 3, 20)
				lease := testLeaseID()
				_, first := openClaim(t, s, lease, testQuota(10))
				s.unanswered.Add(lease, time.Now().Add(time.Minute))
				quotas := []relay.Quota{testQuota(10)}
				if claims, err := s.Claim(t.Context(), lease, time.Minute, quotas); dialect.ClassOf(err) != dialect.Locked {
					t.Fatalf("while the first claim runs, the second gives %+v, %v, want a lock time-out", claims, err)
				}
				end(t, first, commit)
				if claims, err := s.Claim(t.Context(), lease, time.Minute, quotas); err != nil || len(claims) != 3 {
					t.Errorf("the claim gave %d messages, %v, want 3, whoever took them", len(claims), err)
				}
			})
		})
	}
}

// TestFenceStopsALateClaim lets a claim come to the server after its relay was told that it took nothing.
func TestFenceStopsALateClaim(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		s := b.store("a")
		lease := testLeaseID()
		s.unanswered.Add(lease, time.Now().Add(time.Minute))
		quotas := []relay.Quota{testQuota(10)}
		if claims, err := s.Claim(t.Context(), lease, time.Minute, quotas); err != nil || len(claims) > 0 {
			t.Fatalf("Claim gave %+v, %v, want nothing", claims, err)
		}
		b.fill(t, orders, 3, 20)
		if _, err := s.claim(t.Context(), lease, time.Minute, quotas); dialect.ClassOf(err) != dialect.Duplicate {
			t.Errorf("the late claim gives %v, want that its lease exists", err)
		}
		if claims := claim(t, s, testQuota(10)); len(claims) != 3 {
			t.Errorf("the next claim gave %d messages, want 3", len(claims))
		}
	})
}
