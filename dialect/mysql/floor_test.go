package mysql

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// TestFloorRule walks by hand when a claim has a floor, and when it is looked for.
func TestFloorRule(t *testing.T) {
	t.Parallel()
	const at = "2026-11-30 00:00:00.000000"
	var f floors
	start := time.Now()
	quotas := []relay.Quota{testQuota(10), {RoutingKey: orders, Lapses: 1, Limit: 1}, {RoutingKey: orders, ID: "7", Limit: 1}}
	floorIs := func(after time.Duration, want string, sweeps bool) {
		t.Helper()
		if got, sweep := f.of(quotas[0], start.Add(after)); got != want || sweep != sweeps {
			t.Errorf("after %v the floor is %s (a sweep: %v), want %s (%v)", after, got, sweep, want, sweeps)
		}
	}
	if stale := f.stale(quotas, start); len(stale) != 1 || stale[orders] != noFloor {
		t.Errorf("the first look is for %v", stale)
	}
	if stale := f.stale(quotas, start.Add(lookEvery/2)); len(stale) != 0 {
		t.Errorf("the second look is for %v, at once", stale)
	}
	f.found(orders, at)
	floorIs(0, noFloor, true) // the first claim is a sweep
	f.swept(orders, start, time.Second)
	floorIs(20*time.Second-1, at, false)
	floorIs(25*time.Second, noFloor, true) // 20 times the second that the sweep took, and a fifth at most
	for _, q := range quotas[1:] {
		if got, sweep := f.of(q, start); got != noFloor || sweep {
			t.Errorf("%+v has the floor %s (a sweep: %v), want none", q, got, sweep)
		}
	}
	f.doubts(quotas)
	for range 2 {
		f.found(orders, at)
		floorIs(0, noFloor, true)
		f.swept(orders, start, 0)
	}
	floorIs(0, noFloor, false) // until the next look
	f.found(orders, at)
	floorIs(0, at, false)
}

// withoutSweeps lets no claim of the relay leave the floor out, and every claim look for it: it is where the rule allows it,
// and what the rule hides stays hidden.
func withoutSweeps(s *Store) {
	s.floors.mu.Lock()
	defer s.floors.mu.Unlock()
	for _, k := range s.floors.keys {
		k.lookAt, k.sweepAt, k.doubt = time.Time{}, time.Now().Add(time.Hour), 0
	}
}

// floorOf is that of the routing key of these tests.
func floorOf(t testing.TB, s *Store) time.Time {
	t.Helper()
	s.floors.mu.Lock()
	defer s.floors.mu.Unlock()
	at, err := time.Parse(time.DateTime, s.floors.key(orders).at)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func settle(t testing.TB, s *Store, claims []relay.Claim) {
	t.Helper()
	if back, err := s.Settle(t.Context(), settleDone(claims)); err != nil || len(back) > 0 {
		t.Errorf("Settle gave back %d, %v", len(back), err)
	}
}

// TestFloorWaitsForOpenTransactions leaves an INSERT uncommitted while others come and go after it, for longer than the
// margin: its message is found by the first claim after its commit, without a sweep.
func TestFloorWaitsForOpenTransactions(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		s := b.store("a")
		claim(t, s, testQuota(10))
		tx, err := b.db.Beginx()
		if err != nil {
			t.Fatal(err)
		}
		var due time.Time
		if _, err := tx.Exec("INSERT INTO outbox (id, type) VALUES ('late', ?)", orders); err != nil {
			t.Fatal(err)
		}
		if err := tx.Get(&due, "SELECT due_at FROM outbox WHERE id = 'late'"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the margin to be over", func() bool {
			b.fill(t, orders, 3, 20)
			withoutSweeps(s)
			settle(t, s, claim(t, s, testQuota(10)))
			var now time.Time
			if err := b.db.Get(&now, "SELECT UTC_TIMESTAMP(6)"); err != nil {
				t.Fatal(err)
			}
			return now.Sub(due) > 3*time.Second
		})
		if floor := floorOf(t, s); floor.After(due) {
			t.Errorf("the floor is %v after the due_at of an open transaction", floor.Sub(due))
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		withoutSweeps(s)
		if claims := claim(t, s, testQuota(10)); len(claims) != 1 || claims[0].ID != "late" {
			t.Errorf("the claim after the commit gave %v, want message late", claimIDs(claims))
		}
		eventually(t, "the floor to pass the message", func() bool {
			withoutSweeps(s)
			claim(t, s, testQuota(10))
			return floorOf(t, s).After(due)
		})
	})
}

// TestSweepFindsWhatTheFloorHides sets a due_at into the past by hand.
func TestSweepFindsWhatTheFloorHides(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		s := b.store("a")
		claim(t, s, testQuota(10))
		withoutSweeps(s)
		claim(t, s, testQuota(10))
		id := b.Insert(relaytest.Seed{Type: orders, Delay: -time.Hour})[0]
		withoutSweeps(s)
		if claims := claim(t, s, testQuota(10)); len(claims) > 0 {
			t.Error("the floor hides nothing, so this test proves nothing")
		}
		s.floors.mu.Lock()
		s.floors.key(orders).sweepAt = time.Now()
		s.floors.mu.Unlock()
		if claims := claim(t, s, testQuota(10)); len(claims) != 1 || claims[0].ID != id {
			t.Errorf("the sweep gave %v, want message %s", claimIDs(claims), id)
		}
	})
}

// TestFloorHidesNothing lets writers wait up to twice the margin before they commit or roll back, while three relays claim,
// retry, and take leases from each other, without one sweep. What is committed is done in the end.
func TestFloorHidesNothing(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	eachServer(t, func(t *testing.T, b backend) {
		var committed [24]int
		var writers sync.WaitGroup
		for w := range committed {
			random := rand.New(rand.NewPCG(seed, uint64(w)))
			writers.Go(func() {
				for range 3 {
					committed[w] += b.write(t, random)
				}
			})
		}
		written := make(chan struct{})
		go func() { writers.Wait(); close(written) }()
		var relays sync.WaitGroup
		for r := range 3 {
			s := b.store(fmt.Sprint("relay ", r))
			random := rand.New(rand.NewPCG(seed, uint64(100+r)))
			relays.Go(func() { b.work(t, s, random, written) })
		}
		relays.Wait()
		<-written
		want := 0
		for _, n := range committed {
			want += n
		}
		var done []int
		b.read(&done, "SELECT COUNT(*) FROM outbox WHERE state = 'done'")
		if done[0] != want || want == 0 {
			t.Errorf("%d messages are done of %d that were committed", done[0], want)
		}
	})
}

// write inserts some messages in a transaction that stays open for a while, and tells how many it committed.
func (b backend) write(t testing.TB, random *rand.Rand) int {
	tx, err := b.db.Beginx()
	if err != nil {
		t.Error(err)
		return 0
	}
	n := 1 + random.IntN(8)
	insert := "INSERT INTO outbox (type) VALUES ('orders')" + strings.Repeat(", ('orders')", n-1)
	for _, step := range []string{insert, fmt.Sprintf("DO SLEEP(%f)", 4*random.Float64()), insert} {
		if _, err := tx.Exec(step); err != nil {
			t.Error(err)
		}
	}
	commit := random.IntN(3) > 0
	if end(t, tx, commit); commit {
		return 2 * n
	}
	return 0
}

// work is a relay without sweeps, until nothing is left once the writers are through.
func (b backend) work(t testing.TB, s *Store, random *rand.Rand, written <-chan struct{}) {
	eventually(t, "all messages to be done: what is left is hidden by the floor", func() bool {
		for lapses := range 2 {
			withoutSweeps(s)
			claims := claim(t, s, relay.Quota{RoutingKey: orders, Lapses: lapses, Limit: 1 + random.IntN(5)})
			switch draw := random.IntN(10); {
			case len(claims) == 0:
			case draw == 0 && lapses == 0:
				reclaim(t, s, claims[0].Lease)
			case draw < 4:
				settleRetry(t, s, claims, random)
			default:
				settle(t, s, claims)
			}
		}
		select {
		case <-written:
		default:
			return false
		}
		var left []int
		b.read(&left, "SELECT COUNT(*) FROM outbox WHERE state <> 'done'")
		return left[0] == 0
	})
}

func settleRetry(t testing.TB, s *Store, claims []relay.Claim, random *rand.Rand) {
	settlements := make([]relay.Settlement, len(claims))
	for i, c := range claims {
		settlements[i] = relay.Decide(relay.Try{
			Claim: c, Outcome: relay.Retry("http_5xx", "not now"), Draw: random.Float64(),
			Policy: relay.Policy{Budget: 1000, Base: time.Millisecond, Cap: 50 * time.Millisecond},
		})
	}
	if back, err := s.Settle(t.Context(), settlements); err != nil || len(back) > 0 {
		t.Errorf("Settle gave back %d, %v", len(back), err)
	}
}
