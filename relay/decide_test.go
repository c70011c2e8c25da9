package relay

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestDecide is the table of relay/DESIGN.md, Decide, cell by cell: what a send came to, in each of the three columns.
func TestDecide(t *testing.T) {
	t.Parallel()
	const (
		closed = iota
		opened
		cutOff
	)
	const pause = 7 * time.Second
	type want struct {
		what    What
		state   State
		charge  bool
		lapses  LapseRule
		unknown bool
		reason  Reason
		delay   time.Duration // -1: a back-off
		went    bool
	}
	cases := []struct {
		name    string
		outcome Outcome
		column  int
		attempt int // this send's number; the budget is 3
		want    want
	}{
		{"done", Done("2@7"), closed, 1, want{WhatDone, Finished, true, LapsesZero, false, "", 0, true}},
		{"done, opened", Done("2@7"), opened, 1, want{WhatDone, Finished, true, LapsesZero, false, "", 0, true}},
		{"done, cut off", Done("2@7"), cutOff, 1, want{WhatDone, Finished, true, LapsesZero, false, "", 0, true}},
		{"done at the budget", Done(""), closed, 3, want{WhatDone, Finished, true, LapsesZero, false, "", 0, true}},

		{"retry", Retry("http_5xx", "503"), closed, 1, want{WhatRetry, Pending, true, LapsesZero, false, "", -1, true}},
		{"retry, one before the budget", Retry("http_5xx", "503"), closed, 2, want{WhatRetry, Pending, true, LapsesZero, false, "", -1, true}},
		{"retry at the budget", Retry("http_5xx", "503"), closed, 3, want{WhatRetry, Failed, true, LapsesZero, false, Exhausted, 0, true}},
		{"retry past a budget that was lowered", Retry("http_5xx", "503"), closed, 9, want{WhatRetry, Failed, true, LapsesZero, false, Exhausted, 0, true}},
		{"retry, opened", Retry("http_5xx", "503"), opened, 1, want{WhatRetry, Pending, false, LapsesZero, false, "", pause, true}},
		{"retry at the budget, opened", Retry("http_5xx", "503"), opened, 3, want{WhatRetry, Pending, false, LapsesZero, false, "", pause, true}},
		{"retry, cut off: a real 500 is still a 500", Retry("http_5xx", "500"), cutOff, 1, want{WhatRetry, Pending, true, LapsesZero, false, "", -1, true}},
		{"retry below its own limit", Outcome{Kind: KindRetry, Class: "auth", Limit: 2}, closed, 1, want{WhatRetry, Pending, true, LapsesZero, false, "", -1, true}},
		{"retry at its own limit", Outcome{Kind: KindRetry, Class: "auth", Limit: 2}, closed, 2, want{WhatRetry, Failed, true, LapsesZero, false, Rejected, 0, true}},
		{"retry at its own limit, opened", Outcome{Kind: KindRetry, Class: "auth", Limit: 2}, opened, 2, want{WhatRetry, Pending, false, LapsesZero, false, "", pause, true}},

		{"fail", Fail("", "http_4xx", "400"), closed, 1, want{WhatFail, Failed, true, LapsesZero, false, Rejected, 0, true}},
		{"fail, too large", Fail(TooLarge, "too_large", "413"), closed, 1, want{WhatFail, Failed, true, LapsesZero, false, TooLarge, 0, true}},
		{"fail, opened", Fail(Rejected, "http_4xx", "400"), opened, 1, want{WhatFail, Failed, true, LapsesZero, false, Rejected, 0, true}},
		{"fail, cut off", Fail(Rejected, "http_4xx", "400"), cutOff, 1, want{WhatFail, Failed, true, LapsesZero, false, Rejected, 0, true}},
		{"fail with a reason that is not its own", Fail(LeaseLost, "other", ""), closed, 1, want{WhatFail, Failed, true, LapsesZero, false, Rejected, 0, true}},

		{"unknown", Unknown("timeout", ""), closed, 1, want{WhatUnknown, Pending, true, LapsesZero, true, "", -1, true}},
		{"unknown at the budget", Unknown("timeout", ""), closed, 3, want{WhatUnknown, Failed, true, LapsesZero, true, Unknowable, 0, true}},
		{"unknown, opened", Unknown("timeout", ""), opened, 3, want{WhatUnknown, Pending, false, LapsesZero, true, "", pause, true}},
		{"unknown, cut off", Unknown("timeout", ""), cutOff, 3, want{WhatLapse, Pending, false, LapsesAdd, true, "", 0, true}},
		{"outside the closed set", Outcome{Kind: "maybe"}, closed, 1, want{WhatUnknown, Pending, true, LapsesZero, true, "", -1, true}},

		{"unsent", Unsent("refused", ""), closed, 3, want{WhatUnsent, Pending, false, LapsesKeep, false, "", 10 * time.Second, false}},
		{"unsent, opened", Unsent("refused", ""), opened, 3, want{WhatUnsent, Pending, false, LapsesKeep, false, "", 10 * time.Second, false}},
		{"unsent, cut off", Unsent("refused", ""), cutOff, 3, want{WhatRelease, Pending, false, LapsesKeep, false, "", 0, false}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			try := Try{
				Claim:   Claim{ID: "a", Seq: 4, Lease: 9, Attempts: c.attempt - 1, Lapses: 2, Age: 100 * time.Second},
				Outcome: c.outcome,
				Policy:  Policy{Budget: 3, Base: time.Second, Cap: time.Hour},
				Opened:  c.column == opened, Pause: pause, CutOff: c.column == cutOff, Draw: 0.5,
			}
			got := Decide(try).Row()
			if got.ID != "a" || got.Seq != 4 || got.Lease != 9 {
				t.Errorf("settles %q, seq %d, under lease %d: not the message of the claim", got.ID, got.Seq, got.Lease)
			}
			delay := got.Delay
			if c.want.delay == -1 {
				c.want.delay = backoff(c.attempt, time.Second, time.Hour, 0.5)
			}
			is := want{got.What, got.State, got.Charge, got.Lapses, got.MarkUnknown, got.Reason, delay, got.Went}
			if is != c.want {
				t.Errorf("got  %+v\nwant %+v", is, c.want)
			}
		})
	}
}

// TestAdmit asks in the order of relay/DESIGN.md, Admit: the first that holds decides.
func TestAdmit(t *testing.T) {
	t.Parallel()
	policy := &Policy{Versions: []int{1, 2}}
	all := Claim{SchemaVersion: 3, Lapses: 4, Expires: true, Unknown: true, UnknownFor: time.Hour, Age: time.Minute}
	cases := []struct {
		name      string
		admission Admission
		state     State // "": it may be sent
		reason    Reason
		class     string
		delay     time.Duration
	}{
		{"an ordinary message", Admission{Claim: Claim{SchemaVersion: 1}, Policy: policy}, "", "", "", 0},
		{"past the dedupe window, before all else", Admission{Claim: all, Dedupe: Dedupe{Window: time.Hour}}, Failed, Unknowable, "dedupe", 0},
		{"unknown within the window", Admission{Claim: Claim{SchemaVersion: 1, Unknown: true, UnknownFor: time.Minute}, Policy: policy, Dedupe: Dedupe{Window: time.Hour}}, "", "", "", 0},
		{"the window ends while the message waits here", Admission{Claim: Claim{SchemaVersion: 1, Unknown: true, UnknownFor: time.Minute}, Policy: policy, Dedupe: Dedupe{Window: time.Hour}, Since: 59 * time.Minute}, Failed, Unknowable, "dedupe", 0},
		{"unknown, but the destination needs no memory", Admission{Claim: Claim{SchemaVersion: 1, Unknown: true, UnknownFor: 99 * time.Hour}, Policy: policy}, "", "", "", 0},
		{"lapsed too often, before expired", Admission{Claim: all}, Failed, LeaseLost, "lapsed", 0},
		{"three lapses are allowed", Admission{Claim: Claim{SchemaVersion: 1, Lapses: 3}, Policy: policy}, "", "", "", 0},
		{"expired", Admission{Claim: Claim{Expires: true, ExpiresIn: -time.Hour}}, Failed, Expired, "expired", 0},
		{"expired, but it may have taken effect", Admission{Claim: Claim{Expires: true, Unknown: true}}, Failed, Unknowable, "expired", 0},
		{"not yet expired", Admission{Claim: Claim{SchemaVersion: 1, Expires: true, ExpiresIn: time.Minute}, Policy: policy, Since: 59 * time.Second}, "", "", "", 0},
		{"it expires while it waits here", Admission{Claim: Claim{SchemaVersion: 1, Expires: true, ExpiresIn: time.Minute}, Policy: policy, Since: time.Minute}, Failed, Expired, "expired", 0},
		{"it expires while it waits here, but it may have taken effect", Admission{Claim: Claim{Expires: true, ExpiresIn: time.Minute, Unknown: true}, Since: time.Minute}, Failed, Unknowable, "expired", 0},
		{"no policy for its version", Admission{Claim: Claim{SchemaVersion: 3, Age: time.Minute}, Policy: policy}, Pending, "", "no_policy", 6 * time.Second},
		{"no policy for its type, young", Admission{Claim: Claim{SchemaVersion: 1}}, Pending, "", "no_policy", time.Second},
		{"no policy for its type, old", Admission{Claim: Claim{SchemaVersion: 1, Age: 100 * time.Hour}}, Pending, "", "no_policy", 10 * time.Minute},
		{"a policy that names no versions takes all", Admission{Claim: Claim{SchemaVersion: 77}, Policy: &Policy{}}, "", "", "", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, turned := Admit(c.admission)
			row := s.Row()
			if turned != (c.state != "") || row.State != c.state || row.Reason != c.reason || row.ErrorClass != c.class || row.Delay != c.delay {
				t.Errorf("turned %v, %+v; want state %q, reason %q, class %q, delay %s", turned, row, c.state, c.reason, c.class, c.delay)
			}
			if turned && (row.Charge || row.Lapses != LapsesKeep || row.Recorded()) {
				t.Errorf("a message of which nothing went out is charged, counted or recorded: %+v", row)
			}
		})
	}
}

// TestS08_Backoff holds for any attempt and any durations: 50 to 100 % of min(cap, base doubled n-1 times), never 0.
func TestS08_Backoff(t *testing.T) {
	t.Parallel()
	check := func(n int, base, limit time.Duration, draw float64) {
		exact := float64(limit)
		if n < 100 {
			exact = min(exact, float64(base)*math.Pow(2, float64(n-1)))
		}
		got := float64(backoff(n, base, limit, draw))
		if got <= 0 || got < exact/2*0.999999 || got > exact*1.000001 {
			t.Fatalf("backoff(%d, %s, %s, %v) = %s, want 50 to 100 %% of %s", n, base, limit, draw, time.Duration(got), time.Duration(exact))
		}
	}
	for _, n := range []int{1, 2, 3, 12, 40, 62, 63, 64, 65, 1000, math.MaxInt32} {
		for _, base := range []time.Duration{1, time.Millisecond, time.Second, time.Hour} {
			for _, limit := range []time.Duration{base, 2*base - 1, 24 * time.Hour, math.MaxInt64} {
				for _, draw := range []float64{0, 0.5, 0.999999} {
					check(n, base, limit, draw)
				}
			}
		}
	}
	for range 10000 {
		base := time.Duration(1 + rand.Int64N(int64(time.Hour)))
		check(1+rand.IntN(1<<31-2), base, base+time.Duration(rand.Int64N(int64(48*time.Hour))), rand.Float64())
	}
}

// TestRetryAfter: the next try is never earlier than the destination asked, and its wish is followed for a day at most.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ asked, least, most time.Duration }{
		{0, 500 * time.Millisecond, time.Second},
		{100 * time.Millisecond, 500 * time.Millisecond, time.Second},
		{time.Minute, time.Minute, 66 * time.Second},
		{999999 * time.Hour, 24 * time.Hour, 27 * time.Hour},
		{-time.Hour, 500 * time.Millisecond, time.Second},
	} {
		for _, draw := range []float64{0, 0.3, 0.999} {
			got := Decide(Try{
				Outcome: Outcome{Kind: KindRetry, RetryAfter: c.asked}, Draw: draw,
				Policy: Policy{Budget: 9, Base: time.Second, Cap: time.Hour},
			}).Row().Delay
			if got < c.least || got > c.most {
				t.Errorf("Retry-After %s with draw %v: %s, want %s to %s", c.asked, draw, got, c.least, c.most)
			}
		}
	}
}

// TestRetryAfter_Opened: the wish is followed, too, where the breaker opened while the send was under way.
func TestRetryAfter_Opened(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ asked, want time.Duration }{
		{0, time.Minute}, {time.Second, time.Minute}, {time.Hour, time.Hour}, {999999 * time.Hour, 24 * time.Hour},
	} {
		row := Decide(Try{Outcome: Outcome{Kind: KindRetry, RetryAfter: c.asked}, Opened: true, Pause: time.Minute}).Row()
		if row.Delay != c.want {
			t.Errorf("Retry-After %s with a pause of 1m: %s, want %s", c.asked, row.Delay, c.want)
		}
	}
}

// TestRecorded: each send that went out and was not done leaves a row in outbox_attempt, and nothing else does.
func TestRecorded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outcome Outcome
		cut     bool
		want    bool
	}{
		{Done("1@2"), false, false},
		{Outcome{Kind: KindDone, Answer: "a long answer"}, false, true},
		{Retry("broker", ""), false, true},
		{Fail(Rejected, "invalid", ""), false, true},
		{Unknown("timeout", ""), false, true},
		{Unknown("timeout", ""), true, true},
		{Unsent("refused", ""), false, false},
		{Unsent("refused", ""), true, false},
	} {
		row := Decide(Try{Outcome: c.outcome, CutOff: c.cut, Policy: Policy{Budget: 2, Base: 1, Cap: 1}}).Row()
		if row.Recorded() != c.want {
			t.Errorf("%s, cut off %v: recorded %v, want %v", c.outcome.Kind, c.cut, row.Recorded(), c.want)
		}
	}
	if Release(Claim{}).Row().Recorded() {
		t.Error("a release is recorded, but nothing went out")
	}
}
