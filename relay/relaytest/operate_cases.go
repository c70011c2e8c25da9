package relaytest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/outboxd/outboxd/relay"
)

func operateCases() []storeCase {
	return []storeCase{
		{"retry_now makes due what waits for its next try", retryNow},
		{"retry_now leaves what was sent since it was asked for", retryNowLate},
		{"cancel ends and resolves pending messages", cancel},
		{"resolve says that failed messages need nothing more", resolve},
		{"a dry run counts, and changes nothing", dryRun},
		{"a locked row is passed over, and counted", operateLocked},
		{"ids that name nothing are counted", operateUnmatched},
		{"every field of a filter narrows", operateFilters},
		{"a limit ends it", operateLimit},
		{"a rate makes it wait", operateRate},
		{"page by page, by relays in turn", operatePages},
		{"a step that ends with its context changes nothing", operateEnded},
		{"two operations change each message once", operateTwice},
		{"what cannot be is applied with no effect, and says why", operateRefused},
		{"what no relay wrote into its progress refuses it", operateForeign},
		{"what is applied is not applied again", operateAgain},
		{"what tells of a drill is applied, and changes nothing", operateDrill},
	}
}

// order inserts an operation, and gives it as the relays see it.
func (s *suite) order(op relay.Op, filter string) relay.Operation {
	s.Helper()
	return s.ordered(Ordered{Op: op, Filter: filter, Note: "a test"})
}

func (s *suite) ordered(o Ordered) relay.Operation {
	s.Helper()
	id := s.Order(o)
	open, err := s.a.Operations(s.Context())
	s.must("Operations", err)
	i := slices.IndexFunc(open, func(o relay.Operation) bool { return o.ID == id })
	if i < 0 {
		s.Fatalf("operation %s is not among the open ones", id)
	}
	if got := open[i]; got.Op != o.Op || got.DryRun != o.DryRun || got.Note != o.Note || got.Actor != "test" {
		s.Fatalf("the operation is %+v, want %+v", got, o)
	}
	return open[i]
}

func (s *suite) step(store relay.Operator, o relay.Operation, most int) relay.Step {
	s.Helper()
	step, err := store.Operate(s.Context(), o, func(c relay.Candidate) relay.Verdict { return relay.Judge(o, c, relay.Dedupe{}) }, most)
	s.must("Operate", err)
	return step
}

// apply makes steps until the operation is applied, and demands what came of it.
func (s *suite) apply(o relay.Operation, affected int, skipped map[relay.Skip]int) {
	s.Helper()
	for steps := 0; !s.step(s.a, o, 500).Finished; steps++ {
		if steps > 100 {
			s.Fatal("the operation does not end")
		}
	}
	s.applied(o.ID, affected, skipped)
}

func (s *suite) applied(id string, affected int, skipped map[relay.Skip]int) {
	s.Helper()
	row := s.Operation(id)
	if !row.Applied || row.Affected != affected || !maps.Equal(row.Detail.Skipped, skipped) || row.Detail.Refused != "" {
		s.Fatalf("the operation: applied %v, affected %d, detail %+v; want affected %d, skipped %v",
			row.Applied, row.Affected, row.Detail, affected, skipped)
	}
}

func ofID(id string) string { return fmt.Sprintf(`{"ids":[%q]}`, id) }

func skipping(why relay.Skip, n int) map[relay.Skip]int { return map[relay.Skip]int{why: n} }

func retryNow(s *suite) {
	c := s.claimed(Seed{})
	s.settle(decide(exhausted, nil)(c))
	before := s.row(c.ID)
	delayed := s.Insert(Seed{Type: orders, Delay: time.Hour})[0]
	due := s.Insert(Seed{Type: orders})[0]
	s.apply(s.order(relay.OpRetryNow, `{"routing_key":"order_paid"}`), 1, map[relay.Skip]int{relay.SkipDelayed: 1, relay.SkipDue: 1})
	after, want := s.row(c.ID), before
	s.between("due_at", after.DueAt, before.Now, after.Now)
	want.DueAt = after.DueAt
	s.equal(after, want)
	s.apply(s.order(relay.OpRetryNow, ofID(delayed)), 1, nil)
	s.sameIDs("Claim", ids(s.claim(ofOrders)), c.ID, delayed, due)
}

// retryNowLate: what was sent since waits behind the operation, and must not come to lie ahead of it again and again.
func retryNowLate(s *suite) {
	c := s.claimed(Seed{})
	s.settle(decide(exhausted, nil)(c))
	o := s.order(relay.OpRetryNow, `{"routing_key":"order_paid"}`)
	s.apply(s.order(relay.OpRetryNow, ofID(c.ID)), 1, nil)
	s.settle(decide(exhausted, nil)(s.claimOf(c.ID, orders)))
	before := s.row(c.ID)
	s.apply(o, 0, skipping(relay.SkipLate, 1))
	s.unchanged(before)
}

func cancel(s *suite) {
	pending := s.Insert(Seed{Type: orders, Expires: time.Hour}, Seed{Type: orders, Delay: time.Hour})
	other := s.Insert(Seed{Type: refunds})[0]
	before := s.row(pending[0])
	s.apply(s.order(relay.OpCancel, `{"type":"order_paid"}`), 2, nil)
	after, want := s.row(pending[0]), before
	s.between("failed_at", after.FailedAt, before.Now, after.Now)
	s.between("resolved_at", after.ResolvedAt, before.Now, after.Now)
	want.State, want.Reason, want.DueAt = relay.Failed, relay.Cancelled, time.Time{}
	want.FailedAt, want.ResolvedAt = after.FailedAt, after.ResolvedAt
	s.equal(after, want)
	s.states(relay.Failed, pending[1])
	s.states(relay.Pending, other)
	s.apply(s.order(relay.OpCancel, ofID(pending[0])), 0, skipping("failed", 1))
	s.apply(s.order(relay.OpReplay, ofID(pending[0])), 1, nil)
}

func resolve(s *suite) {
	id := s.failed(Seed{}, exhausted)
	before := s.row(id)
	s.apply(s.order(relay.OpResolve, `{"error_class":"http_5xx"}`), 1, nil)
	after, want := s.row(id), before
	s.between("resolved_at", after.ResolvedAt, before.Now, after.Now)
	want.ResolvedAt = after.ResolvedAt
	s.equal(after, want)
	s.apply(s.order(relay.OpResolve, ofID(id)), 0, skipping(relay.SkipResolved, 1))
	s.unchanged(after)
}

func dryRun(s *suite) {
	id := s.failed(Seed{}, rejected)
	pending := s.Insert(Seed{Type: orders})[0]
	before := s.rows(id, pending)
	for _, o := range []Ordered{
		{Op: relay.OpReplay, Filter: `{"state":"failed"}`},
		{Op: relay.OpResolve, Filter: `{"state":"failed"}`, Note: "dry"},
		{Op: relay.OpCancel, Filter: `{"state":"pending"}`},
	} {
		o.DryRun = true
		s.apply(s.ordered(o), 1, nil)
	}
	s.unchanged(before...)
}

func operateLocked(s *suite) {
	locked, free := s.failed(Seed{}, exhausted), s.failed(Seed{}, exhausted)
	unlock := s.Lock(locked)
	s.apply(s.order(relay.OpReplay, `{"state":"failed"}`), 1, skipping(relay.SkipLocked, 1))
	unlock()
	s.states(relay.Failed, locked)
	s.states(relay.Pending, free)
}

func operateUnmatched(s *suite) {
	id := s.failed(Seed{}, exhausted)
	const nobody = "00000000-0000-7000-8000-0000000000ff"
	s.apply(s.order(relay.OpReplay, fmt.Sprintf(`{"ids":[%q,%q,%q]}`, id, nobody, id)), 1, skipping(relay.SkipUnmatched, 1))
}

func operateFilters(s *suite) {
	key, other := "order-1", "orders"
	id := s.failed(Seed{AggregateID: &key, SchemaVersion: 2}, exhausted)
	s.failed(Seed{}, rejected)
	c := s.claimOf(s.Insert(Seed{Type: "x", AggregateType: &other})[0], other)
	s.settle(decide(tooLarge, nil)(c))
	now := s.row(id).Now
	hour := func(n int) string { return now.Add(time.Duration(n) * time.Hour).UTC().Format(time.RFC3339) }
	for filter, want := range map[string]int{
		`{"state":"failed"}`: 3, `{"type":"order_paid"}`: 2, `{"routing_key":"orders"}`: 1, `{"type":"x","routing_key":"orders"}`: 1,
		`{"key":"order-1"}`: 1, `{"schema_version":2}`: 1, `{"error_class":"http_4xx"}`: 1, `{"reason":"too_large"}`: 1,
		`{"since":"` + hour(-1) + `"}`: 3, `{"until":"` + hour(-1) + `"}`: 0, `{"since":"` + hour(1) + `"}`: 0,
		`{"until":"` + hour(1) + `","reason":"exhausted"}`: 1, `{"type":"none"}`: 0,
	} {
		o := s.ordered(Ordered{Op: relay.OpReplay, Filter: filter, DryRun: true})
		for !s.step(s.a, o, 500).Finished {
		}
		if got := s.Operation(o.ID).Affected; got != want {
			s.Errorf("%s is about %d messages, want %d", filter, got, want)
		}
	}
}

func (s *suite) claimOf(id, key string) relay.Claim {
	s.Helper()
	claims := s.claim(relay.Quota{ID: id, RoutingKey: key, Limit: 1})
	s.sameIDs("Claim", ids(claims), id)
	return claims[0]
}

func operateRefused(s *suite) {
	id := s.failed(Seed{}, exhausted)
	before := s.row(id)
	for _, c := range []struct {
		op     relay.Op
		filter string
	}{
		{relay.OpReplay, `{}`},
		{relay.OpReplay, `{"limit":5}`},
		{relay.OpReplay, `{"state":"failed","colour":"red"}`},
		{relay.OpReplay, `{"state":"pending"}`},
		{relay.OpCancel, `{"ids":"` + id + `"}`},
		{relay.OpPause, `{"everything":true}`},
		{relay.OpResume, `{"destination":"x","type":"y"}`},
	} {
		o := s.order(c.op, c.filter)
		if o.Err == nil {
			s.Fatalf("%s %s is not refused", c.op, c.filter)
		}
		if step := s.step(s.a, o, 500); !step.Finished || step.Affected != 0 {
			s.Errorf("%s %s: the step is %+v", c.op, c.filter, step)
		}
		if row := s.Operation(o.ID); !row.Applied || row.Affected != 0 || row.Detail.Refused != o.Err.Error() {
			s.Errorf("%s %s: the operation is %+v, want %v", c.op, c.filter, row, o.Err)
		}
	}
	s.unchanged(before)
}

func operateForeign(s *suite) {
	id := s.Insert(Seed{Type: orders})[0]
	for _, o := range []Ordered{
		{Op: relay.OpCancel, Filter: `{"type":"order_paid"}`, Progress: "half"},
		{Op: relay.OpPause, Filter: `{"everything":true,"for":"1h"}`, Progress: "[]"},
	} {
		o.Note = "by hand"
		asked := s.ordered(o)
		if step := s.step(s.a, asked, 500); !step.Finished || step.Affected != 0 {
			s.Errorf("%s: the step is %+v", o.Op, step)
		}
		if row := s.Operation(asked.ID); !row.Applied || row.Affected != 0 || row.Detail.Refused == "" {
			s.Errorf("%s: the operation is %+v, want it refused", o.Op, row)
		}
	}
	s.states(relay.Pending, id)
}

func operateAgain(s *suite) {
	id := s.failed(Seed{}, exhausted)
	o := s.order(relay.OpReplay, `{"state":"failed"}`)
	s.apply(o, 1, nil)
	c := s.claimOf(id, orders)
	s.settle(decide(rejected, nil)(c))
	before := s.row(id)
	if step := s.step(s.Store("b"), o, 500); !step.Elsewhere || step.Affected != 0 {
		s.Errorf("the step is %+v, want that it is applied", step)
	}
	s.unchanged(before)
	open, err := s.a.Operations(s.Context())
	s.must("Operations", err)
	if len(open) != 0 {
		s.Errorf("open operations: %+v", open)
	}
}

func operateDrill(s *suite) {
	id := s.failed(Seed{}, exhausted)
	before := s.row(id)
	s.apply(s.order(relay.OpDrill, `{"destination":"billing","sent":3,"agreed":3,"differed":0,"unanswered":0}`), 0, nil)
	s.unchanged(before)
}
