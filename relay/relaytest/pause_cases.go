package relaytest

import (
	"time"

	"github.com/outboxd/outboxd/relay"
)

func pauseCases() []storeCase {
	return []storeCase{
		{"is there for all relays until it is resumed", pauseResume},
		{"has an end, and is there until somebody resumes it", pauseEnds},
		{"anew replaces the one before", pauseAnew},
		{"that ended is resumed once, and not where it was paused anew", resumeEnded},
		{"of a type, when it ends, makes due what was turned back", resumeFrees},
		{"and resume come before all others", steerFirst},
		{"is left as it is by a dry run", steerDry},
		{"asked for twice under one id is one", askTwice},
	}
}

func (s *suite) pauses() map[relay.Target]relay.Pause {
	s.Helper()
	told, err := s.Store("b").Pauses(s.Context())
	s.must("Pauses", err)
	pauses := map[relay.Target]relay.Pause{}
	for _, p := range told {
		pauses[p.Target] = p
	}
	return pauses
}

func pauseResume(s *suite) {
	for filter, target := range map[string]relay.Target{
		`{"everything":true`:                      {Everything: true},
		`{"destination":"crm"`:                    {Destination: "crm"},
		`{"routing_key":"orders"`:                 {RoutingKey: "orders"},
		`{"type":"order@paid:x"`:                  {Type: "order@paid:x"},
		`{"type":"order_paid","schema_version":2`: {Type: "order_paid", SchemaVersion: 2},
	} {
		o := s.order(relay.OpPause, filter+`,"indefinitely":true}`)
		s.apply(o, 1, nil)
		want := relay.Pause{Target: target, Operation: o.ID, Endless: true}
		if got := s.pauses(); len(got) != 1 || got[target] != want {
			s.Fatalf("paused is %+v, want %+v", got, want)
		}
		s.apply(s.order(relay.OpResume, filter+`}`), 1, nil)
		if got := s.pauses(); len(got) != 0 {
			s.Fatalf("paused is %+v, want nothing", got)
		}
		s.apply(s.order(relay.OpResume, filter+`}`), 0, skipping(relay.SkipNotPaused, 1))
	}
}

func pauseEnds(s *suite) {
	s.apply(s.order(relay.OpPause, `{"destination":"crm","for":"30m"}`), 1, nil)
	s.apply(s.order(relay.OpPause, `{"destination":"erp","for":"1ns"}`), 1, nil)
	got := s.pauses()
	crm, erp := got[relay.Target{Destination: "crm"}], got[relay.Target{Destination: "erp"}]
	if crm.Endless || crm.Left > 30*time.Minute || crm.Left < 20*time.Minute {
		s.Errorf("paused for 30m: %+v", crm)
	}
	if erp.Operation == "" || erp.Endless || erp.Left > 0 {
		s.Errorf("paused for a moment: %s, operation %q, endless %v, left %s", erp, erp.Operation, erp.Endless, erp.Left)
	}
}

func pauseAnew(s *suite) {
	s.apply(s.order(relay.OpPause, `{"type":"x","for":"30m"}`), 1, nil)
	o := s.order(relay.OpPause, `{"type":"x","indefinitely":true}`)
	s.apply(o, 1, nil)
	if got := s.pauses(); len(got) != 1 || !got[relay.Target{Type: "x"}].Endless || got[relay.Target{Type: "x"}].Operation != o.ID {
		s.Errorf("paused is %+v", got)
	}
}

func resumeEnded(s *suite) {
	crm := relay.Target{Destination: "crm"}
	s.apply(s.order(relay.OpPause, `{"destination":"crm","for":"30m"}`), 1, nil)
	s.apply(s.order(relay.OpResume, `{"destination":"crm","ended":true}`), 0, skipping(relay.SkipNotPaused, 1))
	if _, paused := s.pauses()[crm]; !paused {
		s.Fatal("a pause whose time is not over was resumed")
	}
	s.apply(s.order(relay.OpPause, `{"destination":"crm","for":"1ns"}`), 1, nil)
	s.apply(s.order(relay.OpResume, `{"destination":"crm","ended":true}`), 1, nil)
	if got := s.pauses(); len(got) != 0 {
		s.Errorf("paused is %+v, want nothing", got)
	}
}

func resumeFrees(s *suite) {
	turned := s.claimed(Seed{Age: time.Hour})
	s.settle(admit(func(a *relay.Admission) { a.Paused = true })(turned))
	if row := s.row(turned.ID); row.ErrorClass != relay.ClassPaused || !row.DueAt.After(row.Now) {
		s.Fatalf("the message is %+v", row)
	}
	retried := s.claimed(Seed{})
	s.settle(decide(exhausted, nil)(retried))
	before := s.row(retried.ID)
	s.apply(s.order(relay.OpPause, `{"type":"order_paid","indefinitely":true}`), 1, nil)
	o := s.order(relay.OpResume, `{"type":"order_paid"}`)
	s.apply(o, 1, nil)
	frees := s.Operation(o.ID).Detail.Frees
	if frees == "" {
		s.Fatal("the resume names no operation that frees what it held")
	}
	var open []relay.Operation
	for len(open) == 0 { // a second later
		var err error
		open, err = s.a.Operations(s.Context())
		s.must("Operations", err)
	}
	if open[0].ID != frees || open[0].Op != relay.OpRetryNow || open[0].Actor != "test" || open[0].Err != nil {
		s.Fatalf("open is %+v, want operation %s", open, frees)
	}
	s.apply(open[0], 1, nil)
	s.unchanged(before)
	s.sameIDs("Claim", ids(s.claim(ofOrders)), turned.ID)
}

func steerFirst(s *suite) {
	var want []string
	last := s.Order(Ordered{Op: relay.OpReplay, Filter: `{"state":"failed"}`})
	for range 3 {
		want = append(want, s.Order(Ordered{Op: relay.OpPause, Filter: `{"everything":true,"for":"1m"}`}))
		want = append(want, s.Order(Ordered{Op: relay.OpResume, Filter: `{"everything":true}`}))
		s.Now() // a clock that counts milliseconds goes on
	}
	open, err := s.a.Operations(s.Context())
	s.must("Operations", err)
	var got []string
	for _, o := range open {
		got = append(got, o.ID)
	}
	if len(got) != 7 || got[6] != last {
		s.Fatalf("open is %v, want the replay %s last", got, last)
	}
	s.sameIDs("Operations", got[:6], want...)
}

func steerDry(s *suite) {
	s.apply(s.ordered(Ordered{Op: relay.OpPause, Filter: `{"type":"x","for":"1m"}`, DryRun: true}), 1, nil)
	if got := s.pauses(); len(got) != 0 {
		s.Errorf("paused is %+v, want nothing", got)
	}
}

func askTwice(s *suite) {
	const id = "00000000-0000-4000-8000-000000000001"
	o := relay.Operation{ID: id, Op: relay.OpResume, Actor: "relay a", Note: "its time is over", Order: relay.Target{Type: "x"}.Order()}
	o.Order.Ended = true
	for _, store := range []relay.Operator{s.a, s.Store("b"), s.a} {
		s.must("Ask", store.Ask(s.Context(), o))
	}
	open, err := s.a.Operations(s.Context())
	s.must("Operations", err)
	if len(open) != 1 || open[0].ID != id || open[0].Order.Target() != o.Order.Target() || !open[0].Order.Ended || open[0].Note != o.Note || open[0].Actor != o.Actor {
		s.Fatalf("open is %+v", open)
	}
}
