package relay

import (
	"testing"
	"time"
)

// TestJudge is the table of relay/DESIGN.md, Operations: what an operation does to a message, and what it leaves.
func TestJudge(t *testing.T) {
	t.Parallel()
	failed := func(reason Reason, class string) Candidate {
		return Candidate{State: Failed, Reason: reason, ErrorClass: class}
	}
	with := func(c Candidate, change func(c *Candidate)) Candidate {
		change(&c)
		return c
	}
	unknownFor := func(d time.Duration) func(c *Candidate) {
		return func(c *Candidate) { c.Unknown, c.UnknownFor = true, d }
	}
	late := func(c *Candidate) { c.Late = true }
	resolved := func(c *Candidate) { c.Resolved = true }
	exhausted := failed(Exhausted, "http_5xx")
	waiting := Candidate{State: Pending, Lease: 7}
	byID := Order{Filter: Filter{IDs: []string{"1"}}}
	dedupe := Dedupe{Window: time.Hour}
	same, fresh := Verdict{Effect: Revived}, Verdict{Effect: Revived, NewKey: true, ForgetUnknown: true}
	for _, c := range []struct {
		name  string
		op    Op
		order Order
		of    Candidate
		want  Verdict
	}{
		{"exhausted", OpReplay, Order{}, exhausted, same},
		{"lease lost", OpReplay, Order{}, failed(LeaseLost, "lapsed"), same},
		{"expired", OpReplay, Order{}, failed(Expired, "expired"), same},
		{"rejected", OpReplay, Order{}, failed(Rejected, "http_4xx"), fresh},
		{"too large", OpReplay, Order{}, failed(TooLarge, "too_large"), fresh},
		{"a missing permission", OpReplay, Order{}, failed(Rejected, "auth"), same},
		{"a header that is no string", OpReplay, Order{}, failed(Rejected, "invalid"), fresh},
		{"rejected, the key by name", OpReplay, Order{WireKey: SameKey}, failed(Rejected, "http_4xx"), same},
		{"exhausted, the key by name", OpReplay, Order{WireKey: NewKey}, exhausted, fresh},
		{"unknown, within the window", OpReplay, Order{}, with(failed(Unknowable, "timeout"), unknownFor(dedupe.Window-1)), same},
		{"unknown, past the window", OpReplay, Order{}, with(failed(Unknowable, "timeout"), unknownFor(dedupe.Window)), skip(SkipUnknown)},
		{"unknown, past it, by force", OpReplay, Order{Force: true}, with(failed(Unknowable, "timeout"), unknownFor(dedupe.Window)), Verdict{Effect: Revived, ForgetUnknown: true}},
		{"unknown, a new key", OpReplay, Order{WireKey: NewKey}, with(failed(Unknowable, "timeout"), unknownFor(0)), skip(SkipUnknown)},
		{"unknown, a new key, by force", OpReplay, Order{WireKey: NewKey, Force: true}, with(failed(Unknowable, "timeout"), unknownFor(0)), fresh},
		{"rejected after unknown", OpReplay, Order{}, with(failed(Rejected, "http_4xx"), unknownFor(0)), skip(SkipUnknown)},
		{"late", OpReplay, Order{}, with(exhausted, late), skip(SkipLate)},
		{"resolved", OpReplay, Order{}, with(exhausted, resolved), skip(SkipResolved)},
		{"resolved, by id", OpReplay, byID, with(exhausted, resolved), same},
		{"resolved, by reason", OpReplay, Order{Filter: Filter{Reason: Exhausted}}, with(exhausted, resolved), same},
		{"done", OpReplay, Order{Filter: Filter{State: Finished}}, Candidate{State: Finished}, same},
		{"done, where failed is meant", OpReplay, byID, Candidate{State: Finished}, skip("done")},
		{"failed, where done is meant", OpReplay, Order{Filter: Filter{State: Finished}}, exhausted, skip("failed")},
		{"in flight", OpReplay, byID, Candidate{State: InFlight}, skip("in_flight")},
		{"pending", OpReplay, byID, Candidate{State: Pending}, skip("pending")},

		{"never sent", OpCorrect, Order{}, Candidate{State: Pending}, Verdict{Effect: Corrected, Payload: true}},
		{"sent", OpCorrect, Order{}, Candidate{State: Pending, Went: true}, Verdict{Effect: Revived, Payload: true, NewKey: true, ForgetUnknown: true, KeepExpiry: true}},
		{"failed", OpCorrect, Order{}, failed(Rejected, "http_4xx"), Verdict{Effect: Revived, Payload: true, NewKey: true, ForgetUnknown: true}},
		{"failed, the same key", OpCorrect, Order{WireKey: SameKey}, failed(Rejected, "http_4xx"), Verdict{Effect: Revived, Payload: true}},
		{"unknown", OpCorrect, Order{}, with(exhausted, unknownFor(0)), skip(SkipUnknown)},
		{"unknown, by force", OpCorrect, Order{Force: true}, with(exhausted, unknownFor(0)), Verdict{Effect: Revived, Payload: true, NewKey: true, ForgetUnknown: true}},
		{"unknown of a life before", OpCorrect, Order{}, with(Candidate{State: Pending}, unknownFor(0)), skip(SkipUnknown)},
		{"failed meanwhile", OpCorrect, Order{}, with(exhausted, late), Verdict{Effect: Revived, Payload: true, NewKey: true, ForgetUnknown: true}},
		{"another state than asked for", OpCorrect, Order{Filter: Filter{State: Failed}}, Candidate{State: Pending}, skip("pending")},
		{"in flight", OpCorrect, Order{}, Candidate{State: InFlight}, skip("in_flight")},
		{"done", OpCorrect, Order{}, Candidate{State: Finished}, skip("done")},

		{"waiting", OpRetryNow, Order{}, waiting, Verdict{Effect: Hastened}},
		{"reclaimed", OpRetryNow, Order{}, Candidate{State: Pending, Lease: -1}, Verdict{Effect: Hastened}},
		{"due", OpRetryNow, Order{}, with(waiting, func(c *Candidate) { c.Due = true }), skip(SkipDue)},
		{"delayed", OpRetryNow, Order{}, Candidate{State: Pending}, skip(SkipDelayed)},
		{"delayed, by id", OpRetryNow, byID, Candidate{State: Pending}, Verdict{Effect: Hastened}},
		{"failed", OpRetryNow, byID, exhausted, skip("failed")},

		{"pending", OpCancel, Order{}, Candidate{State: Pending}, Verdict{Effect: Withdrawn}},
		{"in flight", OpCancel, Order{}, Candidate{State: InFlight}, skip("in_flight")},
		{"failed", OpCancel, Order{}, exhausted, skip("failed")},

		{"failed", OpResolve, Order{}, exhausted, Verdict{Effect: Resolved}},
		{"sent since it was asked for", OpRetryNow, byID, with(waiting, late), skip(SkipLate)},
		{"failed later", OpResolve, Order{}, with(exhausted, late), skip(SkipLate)},
		{"resolved", OpResolve, Order{}, with(exhausted, resolved), skip(SkipResolved)},
		{"done", OpResolve, Order{}, Candidate{State: Finished}, skip("done")},
	} {
		if got := Judge(Operation{Op: c.op, Order: c.order}, c.of, dedupe); got != c.want {
			t.Errorf("%s of one that is %s: %+v, want %+v", c.op, c.name, got, c.want)
		}
	}
}

func TestJudgeWithoutAWindow(t *testing.T) {
	t.Parallel()
	c := Candidate{State: Failed, Reason: Unknowable, Unknown: true, UnknownFor: 1000 * time.Hour}
	if got := Judge(Operation{Op: OpReplay}, c, Dedupe{}); got.Effect != Revived || got.NewKey || got.ForgetUnknown {
		t.Errorf("where the destination needs no memory, a replay under the same key is %+v", got)
	}
}
