package relaytest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// modelCases walk a Store and a Memory through the same random steps, and demand the same answers and the same rows.
func modelCases() []storeCase {
	cases := make([]storeCase, 3)
	for i := range cases {
		cases[i] = storeCase{fmt.Sprint("walk ", i), func(s *suite) { newModel(s).walk(150) }}
	}
	return cases
}

// model is two tables that are to be the same: a real one and one in memory, with the same two relays on each. Times that
// lie between a Store's answer and the next step take no part: what becomes pending is due at once or in an hour.
type model struct {
	*suite
	rand   *rand.Rand
	table  *Table
	stores [2]twin
	ids    []string
	claims []relay.Claim // all that were ever made: most are stale
	leases []relay.LeaseID
}

// twin is one relay on both tables.
type twin struct{ real, memory relay.Database }

func newModel(s *suite) *model {
	seed := rand.Uint64()
	s.Logf("the walk's seed is %d", seed)
	table := NewTable()
	return &model{
		suite: s, rand: rand.New(rand.NewPCG(seed, 0)), table: table,
		stores: [2]twin{{s.a, table.Store("a")}, {s.Store("b"), table.Store("b")}},
	}
}

func (m *model) walk(steps int) {
	all := []func(){
		m.insert, m.claimSome, m.claimSome, m.claimOne, m.claimAgain, m.settleSome, m.settleSome, m.renewSome, m.finishEmpty,
		m.takeAndMove, m.moveOnly, m.orphan, m.operate,
	}
	for i := range steps {
		all[m.rand.IntN(len(all))]()
		if i%10 == 0 {
			m.sameRows()
		}
	}
	m.sameRows()
}

// one picks any of a list, and the zero value where there is none.
func one[T any](m *model, of []T) (picked T) {
	if len(of) > 0 {
		picked = of[m.rand.IntN(len(of))]
	}
	return picked
}

func (m *model) key() string { return one(m, []string{orders, refunds}) }

func (m *model) insert() {
	seeds := make([]Seed, 1+m.rand.IntN(4))
	for i := range seeds {
		id := fmt.Sprintf("01900000-0000-7%03x-8000-%012x", m.rand.IntN(1<<12), len(m.ids))
		m.ids = append(m.ids, id)
		seeds[i] = Seed{ID: id, Type: m.key(), Lapses: max(0, m.rand.IntN(6)-3), Attempts: m.rand.IntN(3)}
	}
	m.Insert(seeds...)
	m.table.Insert(seeds...)
}

// claimBoth asks both tables, and keeps what came.
func (m *model) claimBoth(by twin, lease relay.LeaseID, quota relay.Quota) {
	m.Helper()
	real, memory := m.claimBy(by.real, lease, quota), m.claimBy(by.memory, lease, quota)
	m.sameIDs("Claim", ids(real), ids(memory)...)
	m.claims = append(m.claims, real...)
}

func (m *model) claimSome() {
	m.leases = append(m.leases, newLease())
	m.claimBoth(one(m, m.stores[:]), m.leases[len(m.leases)-1], relay.Quota{RoutingKey: m.key(), Lapses: m.rand.IntN(2), Limit: 1000})
}

func (m *model) claimOne() {
	if id := one(m, m.ids); id != "" {
		m.leases = append(m.leases, newLease())
		m.claimBoth(one(m, m.stores[:]), m.leases[len(m.leases)-1], relay.Quota{RoutingKey: m.Row(id).RoutingKey, ID: id, Limit: 1})
	}
}

func (m *model) claimAgain() {
	if lease := one(m, m.leases); lease != 0 {
		m.claimBoth(one(m, m.stores[:]), lease, relay.Quota{RoutingKey: m.key(), Limit: 1000})
	}
}

// settleSome offers settlements of claims old and new, none of a message twice.
func (m *model) settleSome() {
	batch := map[string]relay.Settlement{}
	for range min(len(m.claims), 6) {
		c := m.claims[len(m.claims)-1-m.rand.IntN(min(len(m.claims), 40))]
		batch[c.ID] = m.settlement(c)
	}
	offered := slices.Collect(maps.Values(batch))
	by := one(m, m.stores[:])
	lost, err := by.memory.Settle(m.Context(), offered)
	m.must("Settle in memory", err)
	want := map[string]relay.Why{}
	for _, u := range lost {
		want[u.Row().ID] = u.Why
	}
	m.unsettled(by.real, offered, want)
}

func (m *model) settlement(c relay.Claim) relay.Settlement {
	retry, unknown := relay.Retry("http_5xx", "http_5xx happened"), relay.Unknown("reset", "reset happened")
	return one(m, []func(relay.Claim) relay.Settlement{
		done, relay.Release, relay.Release, decide(retry, nil), decide(unknown, nil), decide(unknown, cutOff),
		func(c relay.Claim) relay.Settlement { return dueAgain(c, "again") },
		decide(retry, func(t *relay.Try) { t.Policy.Budget = 1 }), decide(unknown, func(t *relay.Try) { t.Policy.Budget = 1 }),
		decide(relay.Fail(relay.TooLarge, "too_large", "too_large happened"), nil),
	})(c)
}

func (m *model) renewSome() {
	leases := slices.Compact(slices.Sorted(slices.Values([]relay.LeaseID{one(m, m.leases), one(m, m.leases), newLease()})))
	by := one(m, m.stores[:])
	lost, err := by.memory.Renew(m.Context(), leases)
	m.must("Renew in memory", err)
	m.renew(by.real, leases, lost...)
}

// finishEmpty finishes a lease as a relay may: only where nothing is in flight under it.
func (m *model) finishEmpty() {
	lease := one(m, m.leases)
	if slices.ContainsFunc(m.table.Rows(), func(r Row) bool { return r.State == relay.InFlight && r.LeaseID == lease }) {
		return
	}
	by := one(m, m.stores[:])
	m.finish(by.real, lease)
	m.finish(by.memory, lease)
}

func (m *model) takeAndMove() {
	lease, by := one(m, m.leases), one(m, m.stores[:])
	_, ok := m.watch(by.memory, lease)
	if _, real := m.watch(by.real, lease); real != ok {
		m.Fatalf("Watch shows lease %d: %v, want %v", lease, real, ok)
	}
	if !ok {
		return
	}
	was := m.take(by.memory, lease)
	if real := m.take(by.real, lease); real != was {
		m.Fatalf("Take says that the lease was of %s, want %s", real, was)
	}
	m.moveBoth(by, lease, was)
}

// moveOnly moves without a take: it finds something only where the lease is the relay's own.
func (m *model) moveOnly() { m.moveBoth(one(m, m.stores[:]), one(m, m.leases), "a") }

func (m *model) moveBoth(by twin, lease relay.LeaseID, was string) {
	m.Helper()
	want, _ := m.move(by.memory, lease, was)
	got, _ := m.move(by.real, lease, was)
	m.sameIDs("Move", got, want...)
}

func (m *model) orphan() {
	if m.rand.IntN(2) == 0 {
		lease := one(m, m.leases)
		m.DropLease(lease)
		m.table.DropLease(lease)
	}
	by := one(m, m.stores[:])
	m.sameIDs("the walk for orphans", m.suite.walk(by.real), m.suite.walk(by.memory)...)
}

// operate applies the same operation on both tables. Wire keys stay, since new ones are made at random.
func (m *model) operate() {
	o := one(m, []Ordered{
		{Op: relay.OpReplay, Filter: `{"state":"failed","wire_key":"same"}`},
		{Op: relay.OpReplay, Filter: `{"state":"done","type":"order_paid","force":true}`},
		{Op: relay.OpRetryNow, Filter: `{"routing_key":"order_paid"}`},
		{Op: relay.OpCancel, Filter: `{"type":"order_refunded"}`},
		{Op: relay.OpResolve, Filter: `{"reason":"exhausted"}`, Note: "a walk"},
	})
	o.ID = fmt.Sprintf("01900000-0000-7000-8000-%012x", m.rand.Int64N(1<<48))
	by := one(m, m.stores[:])
	m.Order(o)
	m.table.Order(o)
	for _, store := range []relay.Operator{by.real, by.memory} {
		open, err := store.Operations(m.Context())
		m.must("Operations", err)
		if len(open) != 1 || open[0].ID != o.ID {
			m.Fatalf("open is %+v, want operation %s", open, o.ID)
		}
		for !m.step(store, open[0], 3).Finished {
		}
	}
	got, want := m.Operation(o.ID), m.table.Operation(o.ID)
	if got.Affected != want.Affected || !maps.Equal(got.Detail.Skipped, want.Detail.Skipped) {
		m.Fatalf("%s %s changed %d messages and left %v, want %d and %v", o.Op, o.Filter, got.Affected, got.Detail.Skipped, want.Affected, want.Detail.Skipped)
	}
}

// sameRows compares messages, their attempts and the lease rows; of times, whether they are set.
func (m *model) sameRows() {
	m.Helper()
	for _, id := range m.ids {
		real, memory := m.row(id), m.table.Row(id)
		for _, at := range [][2]*time.Time{
			{&real.DueAt, &memory.DueAt},
			{&real.UnknownSince, &memory.UnknownSince},
			{&real.DoneAt, &memory.DoneAt},
			{&real.FailedAt, &memory.FailedAt},
			{&real.ResolvedAt, &memory.ResolvedAt},
		} {
			if at[0].IsZero() == at[1].IsZero() {
				*at[0] = *at[1]
			}
		}
		memory.Now, memory.Seq, memory.CreatedAt = real.Now, real.Seq, real.CreatedAt
		m.equal(real, memory)
		if got, want := outcomes(m.Attempts(id)), outcomes(m.table.Attempts(id)); got != want {
			m.Fatalf("message %s: outbox_attempt has %s, want %s", id, got, want)
		}
	}
	if got, want := owners(m.Leases()), owners(m.table.Leases()); got != want {
		m.Fatalf("outbox_lease has %s, want %s", got, want)
	}
}

func outcomes(attempts []Attempt) (text string) {
	for _, a := range attempts {
		text += fmt.Sprintf("%d %s %q %q; ", a.Attempt, a.Outcome, a.ErrorClass, a.Error)
	}
	return text
}

func owners(leases []LeaseRow) (text string) {
	for _, l := range leases {
		text += fmt.Sprintf("%d of %s; ", l.ID, l.Relay)
	}
	return text
}
