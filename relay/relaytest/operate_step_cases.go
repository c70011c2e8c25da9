package relaytest

import (
	"time"

	"github.com/outboxd/outboxd/relay"
)

// manyFailed are n messages that failed together.
func (s *suite) manyFailed(n int) []string {
	s.Helper()
	all := s.Insert(repeat(n, Seed{Type: orders})...)
	claims := s.claim(relay.Quota{RoutingKey: orders, Limit: n})
	settlements := make([]relay.Settlement, len(claims))
	for i, c := range claims {
		settlements[i] = decide(rejected, nil)(c)
	}
	s.settle(settlements...)
	return all
}

func operateLimit(s *suite) {
	all := s.manyFailed(7)
	s.apply(s.order(relay.OpReplay, `{"state":"failed","limit":5}`), 5, nil)
	revived := 0
	for _, r := range s.rows(all...) {
		if r.State == relay.Pending {
			revived++
		}
	}
	if revived != 5 {
		s.Errorf("%d messages are pending, want 5", revived)
	}
}

func operateRate(s *suite) {
	resolved := s.failed(Seed{}, exhausted)
	s.apply(s.order(relay.OpResolve, ofID(resolved)), 1, nil)
	s.manyFailed(7)
	o := s.order(relay.OpReplay, `{"state":"failed","rate":0.5}`)
	if step := s.step(s.a, o, 500); step.Affected != 0 || step.Finished || step.Wait != 0 {
		s.Fatalf("a step that leaves a message as it is is %+v, want no wait", step)
	}
	if step := s.step(s.a, o, 500); step.Affected != 1 || step.Finished || step.Wait != 0 {
		s.Fatalf("the next step is %+v, want one message", step)
	}
	step := s.step(s.a, o, 500)
	if step.Affected != 0 || step.Finished || step.Wait <= 0 || step.Wait > 2*time.Second {
		s.Fatalf("the next step is %+v, want a wait of up to 2 s", step)
	}
	o = s.order(relay.OpReplay, `{"state":"failed","rate":4}`)
	if step := s.step(s.Store("b"), o, 500); step.Affected != 3 || step.Finished {
		s.Fatalf("the first step is %+v, want the messages of a second, one of which is resolved", step)
	}
}

func operatePages(s *suite) {
	all := s.manyFailed(250)
	o := s.order(relay.OpReplay, `{"state":"failed"}`)
	b, affected := s.Store("b"), 0
	for n, store := range []relay.Operator{s.a, b, s.a} {
		step := s.step(store, o, 100)
		if affected += step.Affected; step.Affected > 100 || step.Finished != (n == 2) {
			s.Fatalf("step %d is %+v", n+1, step)
		}
		if row := s.Operation(o.ID); row.Affected != affected || row.Progress == "" || row.Applier != []string{"a", "b", "a"}[n] {
			s.Fatalf("after step %d the operation is %+v, want %d affected", n+1, row, affected)
		}
	}
	s.applied(o.ID, len(all), nil)
	for _, r := range s.rows(all...) {
		if r.State != relay.Pending || r.Replays != 1 {
			s.Fatalf("a message is %+v", r)
		}
	}
}

func operateEnded(s *suite) {
	id := s.failed(Seed{}, exhausted)
	o := s.order(relay.OpReplay, `{"state":"failed"}`)
	before := s.row(id)
	never := func(relay.Candidate) relay.Verdict {
		return relay.Judge(o, relay.Candidate{State: relay.Failed}, relay.Dedupe{})
	}
	if _, err := s.a.Operate(cancelledContext(s.Context()), o, never, 500); err == nil {
		s.Error("Operate with an ended context gave no error")
	}
	s.unchanged(before)
	if row := s.Operation(o.ID); row.Applied || row.Affected != 0 || row.Progress != "" {
		s.Errorf("the operation is %+v", row)
	}
	s.apply(o, 1, nil)
}

func operateTwice(s *suite) {
	all := s.manyFailed(150)
	first, second := s.order(relay.OpReplay, `{"state":"failed"}`), s.order(relay.OpReplay, `{"type":"order_paid"}`)
	b := s.Store("b")
	ended := map[string]bool{}
	for len(ended) < 2 {
		for _, turn := range []struct {
			store relay.Operator
			o     relay.Operation
		}{{s.a, first}, {b, second}} {
			if step := s.step(turn.store, turn.o, 20); step.Finished || step.Elsewhere {
				ended[turn.o.ID] = true
			}
		}
	}
	if sum := s.Operation(first.ID).Affected + s.Operation(second.ID).Affected; sum != len(all) {
		s.Errorf("both operations changed %d messages, want %d", sum, len(all))
	}
	for _, r := range s.rows(all...) {
		if r.State != relay.Pending || r.Replays != 1 {
			s.Fatalf("a message is %+v", r)
		}
	}
}
