package relaytest

import (
	"slices"
	"strconv"

	"github.com/outboxd/outboxd/relay"
)

func emitTwice(s *suite) {
	m := s.toTell(Seed{})
	for range 3 {
		s.settle(decide(rejected, emit)(m.Claim))
	}
	s.settle(decide(relay.Done("x"), emit)(m.Claim))
	s.one(m)
}

func emitLost(s *suite) {
	tell := func(claims ...relay.Claim) (settlements []relay.Settlement) {
		for _, c := range claims {
			settlements = append(settlements, decide(relay.Done("x"), emit)(c))
		}
		return settlements
	}
	old := s.claimed(Seed{})
	s.settle(relay.Release(old))
	fresh := s.claim(ofOrders)[0]
	absent := old
	absent.ID, absent.Seq = "01900000-0000-7000-8000-000000000000", old.Seq+1000
	s.unsettled(s.a, tell(old, absent), map[string]relay.Why{old.ID: relay.Lost, absent.ID: relay.Lost})
	s.nothing("a lost settlement")
	s.settle(tell(fresh)...)
	s.unsettled(s.a, tell(old), map[string]relay.Why{old.ID: relay.Lost})
	if got := s.told(results); len(got) != 1 {
		s.Errorf("%d messages tell, want 1", len(got))
	}

	first, beside, second := s.crossed()
	crossed := first
	crossed.Lease = second.Lease
	s.unsettled(s.a, tell(second, crossed, beside), map[string]relay.Why{first.ID: relay.Lost})
	if got := s.told(results); len(got) != 2 || got[first.ID].ID != "" {
		s.Errorf("%d messages tell, want those of the two under their own leases", len(got))
	}
}

func emitLocked(s *suite) {
	s.Insert(repeat(3, Seed{Type: orders})...)
	claims := s.claim(ofOrders)
	messages := s.load(claims...)
	settlements := []relay.Settlement{
		decide(relay.Done("x"), emit)(claims[0]), decide(relay.Done("y"), emit)(claims[1]), decide(rejected, emit)(claims[2]),
	}
	unlock := s.Lock(claims[1].ID)
	s.unsettled(s.a, settlements, map[string]relay.Why{claims[1].ID: relay.Locked})
	got := s.told(results)
	if len(got) != 2 {
		s.Errorf("%d messages tell beside a locked one, want 2", len(got))
	}
	for _, i := range []int{0, 2} {
		s.tells(got[claims[i].ID], telling, messages[claims[i].ID])
	}
	unlock()
	s.settle(settlements...)
	s.one(messages[claims[1].ID])
}

func emitRace(s *suite) {
	s.Insert(repeat(200, Seed{Type: orders})...)
	claims := s.claim(ofOrders)
	settlements := make([]relay.Settlement, len(claims))
	for i, c := range claims {
		settlements[i] = decide([]relay.Outcome{relay.Done("x"), rejected}[i%2], emit)(c)
	}
	backwards := slices.Clone(settlements)
	slices.Reverse(backwards)
	b := s.Store("b")
	atOnce(func() { s.settleAll(s.a, settlements) }, func() { s.settleAll(s.a, backwards) }, func() { s.settleAll(b, settlements) })
	if got := s.told(results); len(got) != len(claims) {
		s.Errorf("%d messages tell, want %d", len(got), len(claims))
	}
}

func emitMany(s *suite) {
	const kinds = 5
	s.Insert(repeat(500, Seed{Type: orders})...)
	claims := s.claim(ofOrders)
	messages := s.load(claims...)
	emits := []relay.Emit{telling, {Type: "other_result", AggregateType: results}}
	settlements := make([]relay.Settlement, len(claims))
	for i, c := range claims {
		name, e := strconv.Itoa(i), emits[i%2]
		emit := func(t *relay.Try) { t.Policy.Emit = e }
		settlements[i] = []relay.Settlement{
			decide(relay.Done(name), emit)(c),
			decide(relay.Fail(relay.Rejected, "invalid", name), emit)(c),
			decide(relay.Done(name), nil)(c),
			decide(rejected, nil)(c),
			decide(exhausted, emit)(c),
		}[i%kinds]
	}
	s.settle(settlements...)
	got := s.told(results)
	if want := len(claims) * 2 / kinds; len(got) != want {
		s.Errorf("%d messages tell, want %d", len(got), want)
	}
	for i, c := range claims {
		if m, ok := got[c.ID]; ok != (i%kinds < 2) {
			s.Fatalf("message %d of the batch is told of: %v", i, ok)
		} else if ok {
			s.tells(m, emits[i%2], messages[c.ID])
		}
	}
}

func emitTexts(s *suite) {
	for _, odd := range []string{
		`a"b\c'd/e`, "ключ 😀", "a\x01\x1b[31m\r\n\t\b\f\x7fb", `\u0041 $1 %s ? {a,b} <&>`, "a\u2028\u202e\u0085b", "NULL",
	} {
		s.Insert(Seed{Type: odd, AggregateID: &odd, Traceparent: odd})
		c := s.claim(relay.Quota{RoutingKey: odd, Limit: 1})[0]
		m, e := s.load(c)[c.ID], relay.Emit{Type: "told " + odd, AggregateType: "of " + odd}
		s.settle(decide(relay.Done(odd), func(t *relay.Try) { t.Policy.Emit = e })(c))
		got := s.told(e.AggregateType)
		if len(got) != 1 {
			s.Fatalf("%d messages tell of %q, want 1", len(got), odd)
		}
		s.tells(got[c.ID], e, m)
	}
}

func emitRefused(s *suite) {
	all := s.Insert(repeat(20, Seed{Type: orders})...)
	claims := s.claim(ofOrders)
	bad := relay.Emit{Type: " padded"}
	settlements := make([]relay.Settlement, len(claims))
	for i, c := range claims {
		settlements[i] = decide(relay.Done("x"), func(t *relay.Try) {
			if emit(t); c.ID == all[7] {
				t.Policy.Emit = bad
			}
		})(c)
	}
	for range 2 {
		s.unsettled(s.a, settlements, map[string]relay.Why{all[7]: relay.Refused})
	}
	s.states(relay.InFlight, all[7])
	if got := s.told(results); len(got) != 19 {
		s.Errorf("%d messages tell, want those of the 19 others", len(got))
	}
	pending := s.Insert(repeat(5, Seed{Type: refunds})...)
	o := s.order(relay.OpCancel, `{"type":"order_refunded"}`)
	judge := func(c relay.Candidate) relay.Verdict {
		v := relay.Judge(o, c, relay.Dedupe{})
		if v.Emit = telling; c.ID == pending[3] {
			v.Emit = bad
		}
		return v
	}
	for steps := 0; ; steps++ {
		step, err := s.a.Operate(s.Context(), o, judge, 500)
		if s.must("Operate", err); step.Finished {
			break
		}
		if steps > 20 {
			s.Fatal("the operation does not end")
		}
	}
	s.applied(o.ID, 4, skipping(relay.SkipRefused, 1))
	s.states(relay.Pending, pending[3])
	if got := s.told(results); len(got) != 4 {
		s.Errorf("%d messages tell of what was cancelled, want 4", len(got))
	}
}
