package relaytest

import (
	"time"

	"github.com/outboxd/outboxd/relay"
)

// effect is a line of the table of relay/DESIGN.md, Decide, as it shows in the row: what a settlement of a message with 3
// attempts, 1 lapse and a budget of 20 does to each column.
type effect struct {
	name    string
	seed    Seed // beside the attempts and the lapse
	settle  func(c relay.Claim) relay.Settlement
	want    func(r *Row)  // the columns that are no times
	due     time.Duration // after the settlement; -1: due_at stays NULL
	done    bool          // done_at is set
	failed  bool          // failed_at is set
	solved  bool          // resolved_at is set
	unknown bool          // unknown_since becomes when the send began
	attempt *Attempt      // the row of outbox_attempt, without its times; nil: none
}

// The sends of this table took so long, and began so long ago: their outcomes waited for the database.
const (
	took  = 1500 * time.Millisecond
	since = took + 90*time.Minute
)

// decide settles by Decide, with nothing left to chance.
func decide(o relay.Outcome, more func(t *relay.Try)) func(c relay.Claim) relay.Settlement {
	return func(c relay.Claim) relay.Settlement {
		t := relay.Try{Claim: c, Outcome: o, Policy: relay.Policy{Budget: 20, Base: time.Hour, Cap: time.Hour}, Took: took}
		if more != nil {
			more(&t)
		}
		return relay.Decide(t)
	}
}

func admit(more func(a *relay.Admission)) func(c relay.Claim) relay.Settlement {
	return func(c relay.Claim) relay.Settlement {
		a := relay.Admission{Claim: c, Policy: &relay.Policy{Budget: 20}}
		if more != nil {
			more(&a)
		}
		s, _ := relay.Admit(a)
		return s
	}
}

func lastAttempt(t *relay.Try)    { t.Policy.Budget = 4 }
func cutOff(t *relay.Try)         { t.CutOff = true }
func breakerOpen(t *relay.Try)    { t.Opened, t.Pause = true, 7*time.Minute }
func noPolicy(a *relay.Admission) { a.Policy = nil }

// sent is the attempt row of a send; attempts is what the message counts after it.
func sent(attempts int, what relay.What, class string, status int) *Attempt {
	return &Attempt{Attempt: attempts, Outcome: what, Status: status, ErrorClass: class, Error: class + " happened"}
}

// left sets state and reason, and the error of a class, where there is one.
func left(state relay.State, reason relay.Reason, class string, more ...func(r *Row)) func(r *Row) {
	return func(r *Row) {
		r.State, r.Reason, r.ErrorClass, r.LastError = state, reason, class, class+" happened"
		if class == "" {
			r.LastError = ""
		}
		for _, f := range more {
			f(r)
		}
	}
}

func charged(r *Row)  { r.Attempts = 4 }
func answered(r *Row) { r.Lapses = 0 }
func lapsed(r *Row)   { r.Lapses++ }
func result(r *Row)   { r.Result = "3@99" }
func ownWords(r *Row) { r.LastError = "-" } // of admit: compared with the settlement's

func outcomeCases() []storeCase {
	var cases []storeCase
	for _, e := range effects() {
		cases = append(cases, storeCase{e.name, e.check})
	}
	return append(cases,
		storeCase{"done and failed keep unknown_since as it was", keepsUnknown},
		storeCase{"what brings no error keeps the last one", keepsError})
}

func (e effect) check(s *suite) {
	e.seed.Attempts, e.seed.Lapses = 3, max(e.seed.Lapses, 1)
	c := s.claimed(e.seed)
	before := s.row(c.ID)
	settlement := e.settle(c).Since(since)
	s.settle(settlement)
	after := s.row(c.ID)

	want := before
	e.want(&want)
	at := func(name string, set bool, column, wanted *time.Time, shift time.Duration) {
		if set {
			s.between(name, *column, before.Now.Add(shift), after.Now.Add(shift))
			*wanted = *column
		}
	}
	at("due_at", e.due >= 0, &after.DueAt, &want.DueAt, e.due)
	at("done_at", e.done, &after.DoneAt, &want.DoneAt, 0)
	at("failed_at", e.failed, &after.FailedAt, &want.FailedAt, 0)
	at("resolved_at", e.solved, &after.ResolvedAt, &want.ResolvedAt, 0)
	if e.unknown {
		s.began("unknown_since", after.UnknownSince, before.Now, after.Now)
		want.UnknownSince = after.UnknownSince
	}
	if want.LastError == "-" {
		want.LastError = settlement.Row().LastError // of admit, whose words are its own
	}
	s.equal(after, want)
	e.checkAttempt(s, before, after)
}

func (e effect) checkAttempt(s *suite, before, after Row) {
	got := s.Attempts(after.ID)
	if e.attempt == nil {
		if len(got) != 0 {
			s.Fatalf("outbox_attempt has %+v, want no row", got)
		}
		return
	}
	if len(got) != 1 {
		s.Fatalf("outbox_attempt has %d rows, want 1", len(got))
	}
	s.began("started_at", got[0].StartedAt, before.Now, after.Now)
	want := *e.attempt
	want.Relay, want.Duration, want.StartedAt = "a", took, got[0].StartedAt
	if d := difference(got[0], want); d != "" {
		s.Fatalf("outbox_attempt: %s", d)
	}
}

// began demands that a send began so long before its outcome was first to be written, between two readings of the database's
// clock; to the millisecond, since SQLite's shows no less.
func (s *suite) began(what string, got, from, to time.Time) {
	s.Helper()
	s.between(what, got, from.Add(-since-time.Millisecond), to.Add(-since))
}

func keepsUnknown(s *suite) {
	for _, outcome := range []relay.Outcome{relay.Done(""), relay.Fail(relay.Rejected, "http_4xx", "no"), relay.Unknown("reset", "gone")} {
		c := s.claimed(Seed{UnknownFor: time.Hour})
		before := s.row(c.ID)
		s.settle(decide(outcome, nil)(c))
		if after := s.row(c.ID); !after.UnknownSince.Equal(before.UnknownSince) {
			s.Errorf("%s moved unknown_since from %v to %v", outcome.Kind, before.UnknownSince, after.UnknownSince)
		}
	}
}

func keepsError(s *suite) {
	settlements := map[string]func(relay.Claim) relay.Settlement{
		"done": done, "release": relay.Release,
	}
	for name, settle := range settlements {
		c := s.claimed(Seed{})
		s.settle(dueAgain(c, "no money"))
		again := s.claim(relay.Quota{RoutingKey: orders, ID: c.ID, Limit: 1})
		s.settle(settle(again[0]))
		if r := s.row(c.ID); r.ErrorClass != "http_5xx" || r.LastError != "no money" {
			s.Errorf("%s made the last error %q, %q of http_5xx, no money", name, r.ErrorClass, r.LastError)
		}
	}
}
