package postgres

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// at is a moment of the database's clock in the tests of the rule.
func at(seconds int) time.Time { return time.Unix(1_800_000_000+int64(seconds), 0) }

func claimsOf(n, lapses int) []relay.Claim {
	return slices.Repeat([]relay.Claim{{RoutingKey: orders, Lapses: lapses}}, n)
}

// TestFloorRule walks the rule of the floors by hand.
func TestFloorRule(t *testing.T) {
	t.Parallel()
	const margin = floorMargin
	for _, c := range []struct {
		name   string
		pulses []pulse
		taken  int // by a quota of 10
		fullTo time.Time
		want   time.Time // the floor of the next claim
	}{
		{name: "no pulse, no floor", taken: 3},
		{name: "a pulse numbered before all that runs", pulses: []pulse{{at(1), 100, 100}}, taken: 3, want: at(1).Add(-margin)},
		{name: "an older transaction runs still", pulses: []pulse{{at(1), 90, 100}, {at(2), 90, 110}}, taken: 3},
		{
			name:   "it ended, and a later one runs: the pulse between",
			pulses: []pulse{{at(1), 90, 100}, {at(2), 90, 110}, {at(3), 105, 120}}, taken: 3, want: at(1).Add(-margin),
		},
		{
			name:   "the newest of several",
			pulses: []pulse{{at(1), 90, 100}, {at(2), 90, 110}, {at(3), 115, 120}}, taken: 3, want: at(2).Add(-margin),
		},
		{name: "a full quota stops at its last message", pulses: []pulse{{at(9), 100, 100}}, taken: 10, fullTo: at(4), want: at(4).Add(-margin)},
		{name: "a full quota ahead of the pulse", pulses: []pulse{{at(9), 100, 100}}, taken: 10, fullTo: at(12), want: at(9).Add(-margin)},
		{name: "another quota was full", pulses: []pulse{{at(9), 100, 100}}, taken: 3, fullTo: at(4), want: at(9).Add(-margin)},
		{name: "messages older than our reckoning", pulses: []pulse{{at(9), 100, 100}}, taken: 10, fullTo: time.Unix(-1e10, 0)},
		{name: "the clock went back", pulses: []pulse{{at(9), 100, 100}, {at(3), 90, 110}}, taken: 3},
		{name: "the numbers went back", pulses: []pulse{{at(9), 100, 100}, {at(10), 50, 60}}, taken: 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var f floors
			for _, p := range c.pulses {
				f.add(p)
			}
			now := time.Now()
			quotas := []relay.Quota{testQuota(10), {RoutingKey: orders, Lapses: 1, Limit: 1}}
			f.end(f.begin(quotas, now), append(claimsOf(c.taken, 0), claimsOf(20, 1)...), c.fullTo, now)
			next := f.begin(quotas, now)
			if !next.from[0].Equal(c.want) {
				t.Errorf("the floor is %v, want %v", next.from[0], c.want)
			}
			if !next.from[1].IsZero() {
				t.Errorf("lapsed messages have the floor %v, want none", next.from[1])
			}
		})
	}
}

// TestFloorSweeps sees when a claim leaves the floor out.
func TestFloorSweeps(t *testing.T) {
	t.Parallel()
	var f floors
	f.add(pulse{at(1), 100, 100})
	quotas := []relay.Quota{testQuota(10)}
	start := time.Now()
	sweeps := func(after time.Duration) bool { return f.begin(quotas, start.Add(after)).from[0].IsZero() }
	if !sweeps(0) {
		t.Error("the first claim is no sweep")
	}
	f.end(f.begin(quotas, start), nil, time.Time{}, start.Add(time.Second)) // it took a second
	if sweeps(20 * time.Second) {
		t.Error("a sweep that took 1 s is made again within 20 s of its end")
	}
	if !sweeps(26 * time.Second) {
		t.Error("a sweep that took 1 s is not made again after 25 s")
	}
	f.doubt(f.begin(quotas, start.Add(2*time.Second)))
	if !sweeps(3 * time.Second) {
		t.Error("after a claim without an answer the next has a floor")
	}
	f.end(f.begin(quotas, start.Add(3*time.Second)), nil, time.Time{}, start.Add(3*time.Second))
	if !sweeps(4 * time.Second) {
		t.Error("the claim after a claim without an answer moved the floor")
	}
	f.end(f.begin(quotas, start.Add(4*time.Second)), nil, time.Time{}, start.Add(4*time.Second))
	if sweeps(5 * time.Second) {
		t.Error("the floor does not come back after two claims with an answer")
	}
}

// TestFloorKeepsFewPulses holds one writing transaction open for ever.
func TestFloorKeepsFewPulses(t *testing.T) {
	t.Parallel()
	var f floors
	for i := range 5 * maxPulses {
		f.add(pulse{at(i), 90, int64(100 + i)})
	}
	if len(f.open) > maxPulses {
		t.Errorf("%d pulses are kept, want %d at most", len(f.open), maxPulses)
	}
	f.add(pulse{at(5 * maxPulses), int64(100 + 5*maxPulses), int64(100 + 5*maxPulses)})
	if len(f.open) != 0 || !f.safe.Equal(at(5*maxPulses)) {
		t.Errorf("%d pulses wait still, and the safe time is %v", len(f.open), f.safe)
	}
}

// withoutSweeps lets no claim of the relay leave the floor out, and every claim have a fresh pulse: the floor is where the
// rule allows it, and what the rule hides stays hidden.
func withoutSweeps(p *Store) {
	f := &p.floors
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = time.Time{}
	for _, k := range f.keys {
		k.sweepAt = time.Now().Add(time.Hour)
	}
}

func (f *floors) of(routingKey string) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.key(routingKey).at
}

// TestFloorWaitsForOpenTransactions leaves an INSERT uncommitted while others come and go after it: its message is
// found by the first claim after its commit, without a sweep.
func TestFloorWaitsForOpenTransactions(t *testing.T) {
	t.Parallel()
	b := newServer(t, false).backend(t)
	p := b.postgres("a")
	claim(t, p, testQuota(10))
	tx, err := b.db.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	var late struct {
		ID  string
		Due time.Time
	}
	if err := tx.Get(&late, "INSERT INTO outbox (type) VALUES ($1) RETURNING id, due_at AS due", orders); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the floor to come as near as it may, and time to pass after it", func() bool {
		b.fill(t, orders, 3, 20)
		withoutSweeps(p)
		settle(t, p, claim(t, p, testQuota(10)))
		var now time.Time
		if err := b.db.Get(&now, "SELECT clock_timestamp()"); err != nil {
			t.Fatal(err)
		}
		return now.Sub(late.Due) > 5*floorMargin && !p.floors.of(orders).IsZero()
	})
	if floor := p.floors.of(orders); floor.After(late.Due) {
		t.Errorf("the floor is %v after the due_at of an open transaction", floor.Sub(late.Due))
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	withoutSweeps(p)
	if claims := claim(t, p, testQuota(10)); len(claims) != 1 || claims[0].ID != late.ID {
		t.Errorf("the claim after the commit gave %+v, want message %s", claims, late.ID)
	}
	eventually(t, "the floor to pass the message", func() bool {
		withoutSweeps(p)
		claim(t, p, testQuota(10))
		return p.floors.of(orders).After(late.Due)
	})
}

func settle(t testing.TB, p *Store, claims []relay.Claim) {
	t.Helper()
	if back, err := p.Settle(t.Context(), settleDone(claims)); err != nil || len(back) > 0 {
		t.Errorf("Settle gave back %d, %v", len(back), err)
	}
}

// TestSweepFindsWhatTheFloorHides sets a due_at into the past by hand.
func TestSweepFindsWhatTheFloorHides(t *testing.T) {
	t.Parallel()
	b := newServer(t, false).backend(t)
	p := b.postgres("a")
	eventually(t, "a floor", func() bool {
		withoutSweeps(p)
		claim(t, p, testQuota(10))
		return !p.floors.of(orders).IsZero()
	})
	id := b.Insert(relaytest.Seed{Type: orders, Delay: -time.Hour})[0]
	withoutSweeps(p)
	if claims := claim(t, p, testQuota(10)); len(claims) > 0 {
		t.Error("the floor hides nothing, so this test proves nothing")
	}
	p.floors.mu.Lock()
	p.floors.key(orders).sweepAt = time.Now()
	p.floors.mu.Unlock()
	if claims := claim(t, p, testQuota(10)); len(claims) != 1 || claims[0].ID != id {
		t.Errorf("the sweep gave %+v, want message %s", claims, id)
	}
}

// TestFloorHidesNothing lets writers wait up to 300 ms before they commit or roll back, while three relays claim,
// retry, and take leases from each other, without one sweep. What is committed is done in the end.
func TestFloorHidesNothing(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	b := newServer(t, false).backend(t)
	var committed [4]int
	var writers sync.WaitGroup
	for w := range committed {
		random := rand.New(rand.NewPCG(seed, uint64(w)))
		writers.Go(func() {
			for range 15 {
				committed[w] += b.write(t, random)
			}
		})
	}
	written := make(chan struct{})
	go func() { writers.Wait(); close(written) }()
	var relays sync.WaitGroup
	for r := range 3 {
		p := b.postgres(fmt.Sprint("relay ", r))
		random := rand.New(rand.NewPCG(seed, uint64(100+r)))
		relays.Go(func() { b.work(t, p, random, written) })
	}
	relays.Wait()
	<-written
	want := committed[0] + committed[1] + committed[2] + committed[3]
	var done []int
	b.read(&done, "SELECT count(*) FROM outbox WHERE state = 'done'")
	if done[0] != want || want == 0 {
		t.Errorf("%d messages are done of %d that were committed", done[0], want)
	}
}

// write inserts some messages in a transaction that stays open for a while, and tells how many it committed.
func (b postgresBackend) write(t testing.TB, random *rand.Rand) int {
	tx, err := b.db.Beginx()
	if err != nil {
		t.Error(err)
		return 0
	}
	n := 1 + random.IntN(8)
	for _, step := range []struct {
		query    string
		argument any
	}{
		{"INSERT INTO outbox (type) SELECT 'orders' FROM generate_series(1, $1::int)", n},
		{"SELECT pg_sleep($1)", 0.3 * random.Float64()},
		{"INSERT INTO outbox (type) SELECT 'orders' FROM generate_series(1, $1::int)", n},
	} {
		if _, err := tx.Exec(step.query, step.argument); err != nil {
			t.Error(err)
		}
	}
	return 2 * n * end(t, tx, random.IntN(3) > 0)
}

// end commits or rolls back, and tells how many transactions it committed.
func end(t testing.TB, tx *sqlx.Tx, commit bool) int {
	if !commit {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		return 0
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	return 1
}

// work is a relay without sweeps, until nothing is left once the writers are through.
func (b postgresBackend) work(t testing.TB, p *Store, random *rand.Rand, written <-chan struct{}) {
	eventually(t, "all messages to be done: what is left is hidden by the floor", func() bool {
		for lapses := range 2 {
			withoutSweeps(p)
			claims := claim(t, p, relay.Quota{RoutingKey: orders, Lapses: lapses, Limit: 1 + random.IntN(5)})
			switch draw := random.IntN(10); {
			case len(claims) == 0:
			case draw == 0 && lapses == 0:
				reclaim(t, p, claims[0].Lease)
			case draw < 4:
				settleRetry(t, p, claims, random)
			default:
				settle(t, p, claims)
			}
		}
		select {
		case <-written:
		default:
			return false
		}
		var left []int
		b.read(&left, "SELECT count(*) FROM outbox WHERE state <> 'done'")
		return left[0] == 0
	})
}

func settleRetry(t testing.TB, p *Store, claims []relay.Claim, random *rand.Rand) {
	settlements := make([]relay.Settlement, len(claims))
	for i, c := range claims {
		settlements[i] = relay.Decide(relay.Try{
			Claim: c, Outcome: relay.Retry("http_5xx", "not now"), Draw: random.Float64(),
			Policy: relay.Policy{Budget: 1000, Base: time.Millisecond, Cap: 50 * time.Millisecond},
		})
	}
	if back, err := p.Settle(t.Context(), settlements); err != nil || len(back) > 0 {
		t.Errorf("Settle gave back %d, %v", len(back), err)
	}
}
