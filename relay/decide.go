package relay

import (
	"cmp"
	"slices"
	"time"
)

// MaxLapses is how often a message may lapse in a row: one more ends it failed(lease_lost).
const MaxLapses = 3

const (
	maxUnsentPause = 30 * time.Second // of a message of which nothing went out
	maxTurnedPause = 10 * time.Minute // of a message that admit turned back
	maxRetryAfter  = 24 * time.Hour   // a destination's wish is followed no longer than this
)

// The error classes of messages that were turned back.
const (
	ClassPaused   = "paused"    // its type or version is paused
	ClassNoPolicy = "no_policy" // no policy accepts its version
)

// Admission is what Admit looks at.
type Admission struct {
	Claim  Claim
	Policy *Policy // nil: no policy for this type
	Dedupe Dedupe
	Since  time.Duration // since the claim
	Paused bool          // its type or version is
}

// Admit asks, before the send, whether a claimed message may go out, in the order of relay/DESIGN.md, Admit. Where it may
// not, turned is true and the settlement says what becomes of it: failed, or pending again because no policy takes its
// type or version (the next configuration will).
func Admit(a Admission) (s Settlement, turned bool) {
	s, turned = admit(a)
	if a.Policy != nil {
		s = s.telling(a.Policy.Emit)
	}
	return s, turned
}

func admit(a Admission) (s Settlement, turned bool) {
	c := a.Claim
	expired := c.Expires && c.ExpiresIn <= a.Since
	switch {
	case c.Unknown && a.Dedupe.over(c.UnknownFor+a.Since):
		return ended(c, Unknowable, "dedupe", "an earlier send may have taken effect, and the destination no longer remembers its key"), true
	case c.Lapses > MaxLapses:
		return ended(c, LeaseLost, "lapsed", "four leases in a row ended without an outcome: sending this message may kill the relay"), true
	case expired && c.Unknown:
		return ended(c, Unknowable, "expired", "past expires_at, and an earlier send may have taken effect"), true
	case expired:
		return ended(c, Expired, "expired", "past expires_at before it was sent"), true
	case a.Paused:
		return turnedBack(c, ClassPaused, tenth(c.Age+a.Since, maxTurnedPause)), true
	case a.Policy == nil || len(a.Policy.Versions) > 0 && !slices.Contains(a.Policy.Versions, c.SchemaVersion):
		return turnedBack(c, ClassNoPolicy, tenth(c.Age+a.Since, maxTurnedPause)), true
	}
	return Settlement{}, false
}

// Try is all that Decide looks at.
type Try struct {
	Claim   Claim
	Outcome Outcome
	Policy  Policy
	Never   bool          // the destination remembers no wire key: relay.Dedupe
	Opened  bool          // the breaker opened while the send was under way, and this was not its probe
	Pause   time.Duration // of that breaker
	CutOff  bool          // we ended the send, because of a stop or because its lease ended
	Took    time.Duration // since the send began
	Draw    float64       // a random number in [0, 1)
}

// Decide makes the settlement of a send from its outcome: the table of relay/DESIGN.md, Decide. It is pure and total; an
// outcome outside the closed set counts as unknown. Only Decide ends a message at its budget.
func Decide(t Try) Settlement { return decide(t).telling(t.Policy.Emit) }

func decide(t Try) Settlement {
	switch t.Outcome.Kind {
	case KindDone:
		return done(t)
	case KindFail:
		if t.Outcome.Ours {
			return ended(t.Claim, cmp.Or(t.Outcome.Reason, Rejected), t.Outcome.Class, t.Outcome.Err)
		}
		if t.Outcome.Reason == TooLarge {
			return fail(t, TooLarge)
		}
		return fail(t, Rejected)
	case KindRetry:
		return decideRetry(t)
	case KindUnsent:
		if t.CutOff {
			return Release(t.Claim)
		}
		return unsent(t, tenth(t.Claim.Age+t.Took, maxUnsentPause))
	default:
		t.Outcome.Kind = KindUnknown
		return decideUnknown(t)
	}
}

func decideRetry(t Try) Settlement {
	attempt := t.Claim.Attempts + 1
	switch {
	case t.Outcome.Reason == Unknowable:
		return fail(t, Unknowable)
	case t.Opened:
		return retry(t, max(t.Pause, min(t.Outcome.RetryAfter, maxRetryAfter)), false)
	case t.Outcome.Limit > 0 && attempt >= t.Outcome.Limit:
		return fail(t, Rejected)
	case attempt >= t.Policy.Budget:
		return fail(t, Exhausted)
	}
	return retry(t, nextTry(t, attempt), true)
}

func decideUnknown(t Try) Settlement {
	attempt := t.Claim.Attempts + 1
	switch {
	case t.CutOff:
		return lapse(t)
	case t.Never:
		return fail(t, Unknowable)
	case t.Opened:
		return unknown(t, t.Pause, false)
	case attempt >= t.Policy.Budget:
		return fail(t, Unknowable)
	}
	return unknown(t, nextTry(t, attempt), true)
}

// nextTry is the back-off after this attempt, and never earlier than the destination asked for; jitter then only adds.
func nextTry(t Try, attempt int) time.Duration {
	own := backoff(attempt, t.Policy.Base, t.Policy.Cap, t.Draw)
	asked := min(t.Outcome.RetryAfter, maxRetryAfter)
	if asked <= own {
		return own
	}
	return asked + time.Duration(t.Draw*float64(asked/10))
}
