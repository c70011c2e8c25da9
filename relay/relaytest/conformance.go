package relaytest

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// TestStore holds a Database to its contract: the docstrings of package relay's store.go and relay/DESIGN.md.
// Every case opens a table of its own, runs in parallel to the others and sleeps nowhere: ages and delays are seeded.
func TestStore(t *testing.T, open func(t *testing.T) Backend) {
	groups := map[string][]storeCase{
		"claim":       claimCases(),
		"claim again": claimAgainCases(),
		"load":        loadCases(),
		"outcome":     outcomeCases(),
		"settle":      settleCases(),
		"text":        textCases(),
		"emit":        emitCases(),
		"lease":       leaseCases(),
		"take":        takeCases(),
		"move":        moveCases(),
		"orphans":     orphanCases(),
		"scout":       scoutCases(),
		"presence":    presenceCases(),
		"operate":     operateCases(),
		"replay":      replayCases(),
		"correct":     correctCases(),
		"pause":       pauseCases(),
		"instance":    instanceCases(),
		"remove":      removeCases(),
		"model":       modelCases(),
		"figures":     figureCases(),
		"at once":     raceCases(),
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			for _, c := range groups[group] {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					backend := open(t)
					c.run(&suite{T: t, Backend: backend, a: backend.Store("a")})
				})
			}
		})
	}
}

type storeCase struct {
	name string
	run  func(s *suite)
}

// suite is what a case works with: a table, and a relay named a on it.
type suite struct {
	*testing.T
	Backend
	a relay.Database
}

const (
	orders  = "order_paid" // the routing key of most seeds, which is their type
	refunds = "order_refunded"
	long    = time.Hour // a lease's length, where it does not matter
)

var ofOrders = relay.Quota{RoutingKey: orders, Limit: 1000}

func newLease() relay.LeaseID { return relay.LeaseID(1 + rand.Int64N(math.MaxInt64)) }

func repeat(n int, seed Seed) []Seed { return slices.Repeat([]Seed{seed}, n) }

// claim takes what the quotas ask for, under a new lease of relay a.
func (s *suite) claim(quotas ...relay.Quota) []relay.Claim {
	s.Helper()
	return s.claimBy(s.a, newLease(), quotas...)
}

func (s *suite) claimBy(store relay.Store, lease relay.LeaseID, quotas ...relay.Quota) []relay.Claim {
	s.Helper()
	claims, err := store.Claim(s.Context(), lease, long, quotas)
	s.must("Claim", err)
	for _, c := range claims {
		if c.Lease != lease {
			s.Fatalf("Claim under lease %d answered a message under lease %d", lease, c.Lease)
		}
	}
	return claims
}

// claimed inserts a message and claims it under a new lease of relay a.
func (s *suite) claimed(seed Seed) relay.Claim {
	s.Helper()
	seed.Type = orders
	id := s.Insert(seed)[0]
	claims := s.claim(relay.Quota{ID: id, RoutingKey: orders, Lapses: min(seed.Lapses, 1), Limit: 1})
	s.sameIDs("Claim", ids(claims), id)
	return claims[0]
}

// settle writes settlements, all of which must be written.
func (s *suite) settle(settlements ...relay.Settlement) {
	s.Helper()
	s.unsettled(s.a, settlements, nil)
}

// unsettled writes settlements, of which just those of the map must come back, with its reasons.
func (s *suite) unsettled(store relay.Store, settlements []relay.Settlement, want map[string]relay.Why) {
	s.Helper()
	back, err := store.Settle(s.Context(), settlements)
	s.must("Settle", err)
	got := map[string]relay.Why{}
	for _, u := range back {
		got[u.Row().ID] = u.Why
	}
	if len(back) != len(got) || !maps.Equal(got, want) {
		s.Fatalf("Settle gave back %v (Locked is %d, Lost is %d), want %v", got, relay.Locked, relay.Lost, want)
	}
}

func (s *suite) must(what string, err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// sameIDs compares ids in whatever order, each of which must be there once.
func (s *suite) sameIDs(what string, got []string, want ...string) {
	s.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		s.Fatalf("%s: got %d messages %v, want %d %v", what, len(got), got, len(want), want)
	}
}

// row reads a message that must be there, with times that == can compare.
func (s *suite) row(id string) Row {
	s.Helper()
	r := s.Row(id)
	if r.ID != id {
		s.Fatalf("message %s is not in the table", id)
	}
	for _, at := range []*time.Time{
		&r.Now, &r.CreatedAt, &r.DueAt, &r.ExpiresAt, &r.UnknownSince, &r.DoneAt, &r.FailedAt, &r.ResolvedAt,
	} {
		*at = at.Round(0).UTC()
	}
	return r
}

func (s *suite) rows(ids ...string) []Row {
	s.Helper()
	rows := make([]Row, len(ids))
	for i, id := range ids {
		rows[i] = s.row(id)
	}
	return rows
}

// unchanged demands that a message is as it was.
func (s *suite) unchanged(was ...Row) {
	s.Helper()
	for _, w := range was {
		s.equal(s.row(w.ID), w)
	}
}

// equal compares two rows but for the moment when they were read.
func (s *suite) equal(got, want Row) {
	s.Helper()
	got.Now = want.Now
	if d := difference(got, want); d != "" {
		s.Fatalf("message %s: %s", want.ID, d)
	}
}

// states demands the state of each message.
func (s *suite) states(want relay.State, ids ...string) {
	s.Helper()
	for _, id := range ids {
		if got := s.row(id).State; got != want {
			s.Fatalf("message %s is %s, want %s", id, got, want)
		}
	}
}

// between demands that a time lies between two readings of the database's clock, to the microsecond that columns keep.
func (s *suite) between(what string, got, from, to time.Time) {
	s.Helper()
	if got.Before(from.Add(-time.Microsecond)) || got.After(to.Add(time.Microsecond)) {
		s.Fatalf("%s is %v, want it from %v to %v", what, got, from, to)
	}
}

// difference names the fields of two structs of one type that are not equal.
func difference(got, want any) string {
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	var fields []string
	for i := range g.NumField() {
		if !reflect.DeepEqual(g.Field(i).Interface(), w.Field(i).Interface()) {
			fields = append(fields, fmt.Sprintf("%s is %v, want %v", g.Type().Field(i).Name, g.Field(i), w.Field(i)))
		}
	}
	return strings.Join(fields, "; ")
}

func ids(claims []relay.Claim) []string {
	var all []string
	for _, c := range claims {
		all = append(all, c.ID)
	}
	return all
}

func done(c relay.Claim) relay.Settlement {
	return relay.Decide(relay.Try{Claim: c, Outcome: relay.Done("0@1"), Took: time.Second})
}

func allDone(claims []relay.Claim) []relay.Settlement {
	settlements := make([]relay.Settlement, len(claims))
	for i, c := range claims {
		settlements[i] = done(c)
	}
	return settlements
}

// dueAgain is charged to nobody and due at once, with this as the last error.
func dueAgain(c relay.Claim, err string) relay.Settlement {
	return relay.Decide(relay.Try{Claim: c, Outcome: relay.Retry("http_5xx", err), Opened: true, Took: time.Second})
}

// cancelledContext has ended.
func cancelledContext(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
