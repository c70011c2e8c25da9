package relaytest

import (
	"fmt"
	"time"

	"github.com/outboxd/outboxd/relay"
)

func replayCases() []storeCase {
	return []storeCase{
		{"revives what failed, in a new life", replayEffect},
		{"gives a new wire key to what was rejected", replayKeys},
		{"of done messages, where it says so", replayDone},
		{"leaves what it is not for, and says why", replaySkips},
		{"of what is resolved, by reason or id", replayResolved},
		{"where an earlier send may have taken effect", replayUnknown},
		{"of what failed after it was asked for", replayLate},
	}
}

// failed is a message that failed with that outcome, under a lease of relay a.
func (s *suite) failed(seed Seed, outcome relay.Outcome) string {
	s.Helper()
	c := s.claimed(seed)
	s.settle(decide(outcome, func(t *relay.Try) { t.Policy.Budget = 1 })(c))
	s.states(relay.Failed, c.ID)
	return c.ID
}

// What a message can fail of.
var (
	exhausted = relay.Retry("http_5xx", "no")
	rejected  = relay.Fail(relay.Rejected, "http_4xx", "no")
	tooLarge  = relay.Fail(relay.TooLarge, "too_large", "no")
	forbidden = relay.Fail(relay.Rejected, "auth", "no")
	unknown   = relay.Unknown("timeout", "no")
)

func replayEffect(s *suite) {
	id := s.failed(Seed{Attempts: 3, Lapses: 1, Expires: time.Hour, Payload: []byte("{}")}, exhausted)
	before := s.row(id)
	s.apply(s.order(relay.OpReplay, `{"state":"failed"}`), 1, nil)
	after, want := s.row(id), before
	s.between("due_at", after.DueAt, before.Now, after.Now)
	want.State, want.DueAt, want.Attempts, want.Lapses, want.Replays = relay.Pending, after.DueAt, 0, 0, 1
	want.FailedAt, want.Reason, want.ExpiresAt = time.Time{}, "", time.Time{}
	s.equal(after, want)
	if got := s.Attempts(id); len(got) != 1 || got[0].Life != 0 {
		s.Errorf("outbox_attempt has %+v, want the send of the first life", got)
	}
	c := s.claim(ofOrders)
	s.sameIDs("Claim", ids(c), id)
	s.settle(dueAgain(c[0], "again"))
	if got := s.Attempts(id); len(got) != 2 || got[1].Life != 1 {
		s.Errorf("outbox_attempt has %+v, want a send of the second life", got)
	}
}

func replayKeys(s *suite) {
	const ownKey = "00000000-0000-4000-8000-000000000001"
	for name, c := range map[string]struct {
		outcome relay.Outcome
		more    string // of the filter
		key     string // the wire key before
		fresh   bool   // it gets a new one
	}{
		"exhausted":                   {exhausted, ``, "", false},
		"rejected":                    {rejected, ``, "", true},
		"too large":                   {tooLarge, ``, "", true},
		"a missing permission":        {forbidden, ``, "", false},
		"rejected, the same key":      {rejected, `,"wire_key":"same"`, "", false},
		"exhausted, a new key":        {exhausted, `,"wire_key":"new"`, "", true},
		"exhausted under an own key":  {exhausted, ``, ownKey, false},
		"rejected under an own key":   {rejected, ``, ownKey, true},
		"unknown, the key as it was":  {unknown, ``, "", false},
		"unknown, a new key by force": {unknown, `,"wire_key":"new","force":true`, "", true},
	} {
		seed := Seed{SendID: c.key}
		id := s.failed(seed, c.outcome)
		s.apply(s.order(relay.OpReplay, fmt.Sprintf(`{"ids":[%q]%s}`, id, c.more)), 1, nil)
		row := s.row(id)
		if fresh := row.SendID != seed.SendID; fresh != c.fresh || fresh && row.SendID == id {
			s.Errorf("%s: send_id became %q", name, row.SendID)
		}
		if lost := row.UnknownSince.IsZero(); lost == (c.outcome.Kind == relay.KindUnknown && !c.fresh) {
			s.Errorf("%s: unknown_since is %v", name, row.UnknownSince)
		}
	}
	var of []string
	for range 3 {
		of = append(of, s.failed(Seed{}, rejected))
	}
	s.apply(s.order(relay.OpReplay, `{"state":"failed","reason":"rejected"}`), 3, nil)
	keys := map[string]bool{}
	for _, id := range of {
		keys[s.row(id).SendID] = true
	}
	if len(keys) != 3 {
		s.Errorf("three messages got the wire keys %v, want one each", keys)
	}
}

func replayDone(s *suite) {
	c := s.claimed(Seed{})
	s.settle(done(c))
	s.apply(s.order(relay.OpReplay, ofID(c.ID)), 0, skipping("done", 1))
	s.states(relay.Finished, c.ID)
	s.apply(s.order(relay.OpReplay, `{"state":"done"}`), 1, nil)
	if row := s.row(c.ID); row.State != relay.Pending || row.Result != "" || row.SendID != "" || !row.DoneAt.IsZero() || row.Replays != 1 {
		s.Errorf("the message is %+v", row)
	}
}

func replaySkips(s *suite) {
	finished, flying := s.claimed(Seed{}), s.claimed(Seed{})
	s.settle(done(finished))
	pending := s.Insert(Seed{Type: orders})[0]
	failed := s.failed(Seed{}, exhausted)
	before := s.rows(finished.ID, flying.ID, pending)
	s.apply(s.order(relay.OpReplay, fmt.Sprintf(`{"ids":[%q,%q,%q,%q]}`, finished.ID, flying.ID, pending, failed)), 1,
		map[relay.Skip]int{"done": 1, "in_flight": 1, "pending": 1})
	s.unchanged(before...)
}

func replayResolved(s *suite) {
	id := s.failed(Seed{}, exhausted)
	s.apply(s.order(relay.OpResolve, ofID(id)), 1, nil)
	s.apply(s.order(relay.OpReplay, `{"state":"failed"}`), 0, skipping(relay.SkipResolved, 1))
	s.apply(s.order(relay.OpReplay, `{"reason":"exhausted"}`), 1, nil)
	if row := s.row(id); row.State != relay.Pending || !row.ResolvedAt.IsZero() {
		s.Errorf("the message is %+v", row)
	}
}

func replayUnknown(s *suite) {
	id := s.failed(Seed{UnknownFor: time.Hour}, rejected)
	s.apply(s.order(relay.OpReplay, ofID(id)), 0, skipping(relay.SkipUnknown, 1))
	o := s.order(relay.OpReplay, `{"state":"failed","wire_key":"same"}`)
	past := func(c relay.Candidate) relay.Verdict {
		if !c.Unknown || c.UnknownFor < time.Hour || c.UnknownFor > 2*time.Hour {
			s.Errorf("unknown for %v (set: %v), want an hour", c.UnknownFor, c.Unknown)
		}
		return relay.Judge(o, c, relay.Dedupe{Window: time.Minute})
	}
	_, err := s.a.Operate(s.Context(), o, past, 10)
	s.must("Operate", err)
	s.applied(o.ID, 0, skipping(relay.SkipUnknown, 1))
	s.apply(s.order(relay.OpReplay, `{"state":"failed","force":true}`), 1, nil)
	if row := s.row(id); !row.UnknownSince.IsZero() || row.SendID == "" {
		s.Errorf("the message is %+v", row)
	}
}

func replayLate(s *suite) {
	first := s.failed(Seed{}, exhausted)
	o := s.order(relay.OpReplay, `{"state":"failed"}`)
	second := s.failedAfter(o, Seed{}, exhausted)
	s.apply(o, 1, skipping(relay.SkipLate, 1))
	s.states(relay.Pending, first)
	s.states(relay.Failed, second)
}

// failedAfter is a message that failed after the operation was asked for, by a clock that may count milliseconds.
func (s *suite) failedAfter(o relay.Operation, seed Seed, outcome relay.Outcome) string {
	s.Helper()
	asked := s.Now()
	for !s.Now().After(asked.Add(2 * time.Millisecond)) {
	}
	return s.failed(seed, outcome)
}

// Now reads the database's clock.
func (s *suite) Now() time.Time {
	s.Helper()
	return s.row(s.Insert(Seed{Type: "clock", Delay: time.Hour})[0]).Now
}
