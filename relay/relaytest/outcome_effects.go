package relaytest

import (
	"strings"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// effects is the table of relay/DESIGN.md, Decide, and of admit in section 4, line by line.
func effects() []effect {
	retry := relay.Retry("http_5xx", "http_5xx happened")
	retry.Status = 503
	fail := relay.Fail(relay.Rejected, "http_4xx", "http_4xx happened")
	fail.Status = 422
	large := relay.Fail(relay.TooLarge, "too_large", "too_large happened")
	large.Status = 413
	unknown := relay.Unknown("timeout", "timeout happened")
	unsent := relay.Unsent("refused", "refused happened")
	answer := strings.Repeat("ä", 200)
	limited := retry
	limited.Limit = 4
	return []effect{
		{
			name: "done", settle: decide(relay.Done("3@99"), nil), due: -1, done: true,
			want: left(relay.Finished, "", "", charged, answered, result),
		}, {
			name: "done with a long answer", settle: decide(relay.Outcome{Kind: relay.KindDone, Status: 201, Result: "3@99", Answer: answer}, nil),
			due: -1, done: true, want: left(relay.Finished, "", "", charged, answered, result),
			attempt: &Attempt{Attempt: 4, Outcome: relay.WhatDone, Status: 201, Answer: answer},
		}, {
			name: "done while the breaker opened", settle: decide(relay.Done("3@99"), breakerOpen), due: -1, done: true,
			want: left(relay.Finished, "", "", charged, answered, result),
		}, {
			name: "done, cut off by us", settle: decide(relay.Done("3@99"), cutOff), due: -1, done: true,
			want: left(relay.Finished, "", "", charged, answered, result),
		}, {
			name: "retry", settle: decide(retry, nil), due: time.Hour,
			want:    left(relay.Pending, "", "http_5xx", charged, answered),
			attempt: sent(4, relay.WhatRetry, "http_5xx", 503),
		}, {
			name: "retry at the budget", settle: decide(retry, lastAttempt), due: -1, failed: true,
			want:    left(relay.Failed, relay.Exhausted, "http_5xx", charged, answered),
			attempt: sent(4, relay.WhatRetry, "http_5xx", 503),
		}, {
			name: "retry at the outcome's own limit", settle: decide(limited, nil), due: -1, failed: true,
			want:    left(relay.Failed, relay.Rejected, "http_5xx", charged, answered),
			attempt: sent(4, relay.WhatRetry, "http_5xx", 503),
		}, {
			name: "retry while the breaker opened", settle: decide(retry, breakerOpen), due: 7 * time.Minute,
			want:    left(relay.Pending, "", "http_5xx", answered),
			attempt: sent(3, relay.WhatRetry, "http_5xx", 503),
		}, {
			name: "fail", settle: decide(fail, nil), due: -1, failed: true,
			want:    left(relay.Failed, relay.Rejected, "http_4xx", charged, answered),
			attempt: sent(4, relay.WhatFail, "http_4xx", 422),
		}, {
			name: "fail as too large", settle: decide(large, nil), due: -1, failed: true,
			want:    left(relay.Failed, relay.TooLarge, "too_large", charged, answered),
			attempt: sent(4, relay.WhatFail, "too_large", 413),
		}, {
			name: "unknown", settle: decide(unknown, nil), due: time.Hour, unknown: true,
			want:    left(relay.Pending, "", "timeout", charged, answered),
			attempt: sent(4, relay.WhatUnknown, "timeout", 0),
		}, {
			name: "unknown at the budget", settle: decide(unknown, lastAttempt), due: -1, failed: true, unknown: true,
			want:    left(relay.Failed, relay.Unknowable, "timeout", charged, answered),
			attempt: sent(4, relay.WhatUnknown, "timeout", 0),
		}, {
			name: "unknown while the breaker opened", settle: decide(unknown, breakerOpen), due: 7 * time.Minute, unknown: true,
			want:    left(relay.Pending, "", "timeout", answered),
			attempt: sent(3, relay.WhatUnknown, "timeout", 0),
		}, {
			name: "unknown, cut off by us", settle: decide(unknown, cutOff), due: 0, unknown: true,
			want:    left(relay.Pending, "", "timeout", lapsed),
			attempt: sent(3, relay.WhatLapse, "timeout", 0),
		}, {
			name: "unsent", settle: decide(unsent, nil), seed: Seed{Age: time.Hour}, due: 30 * time.Second,
			want: left(relay.Pending, "", "refused"),
		}, {
			name: "unsent, cut off by us", settle: decide(unsent, cutOff), due: 0, want: left(relay.Pending, "", ""),
		}, {
			name: "release", settle: relay.Release, due: 0, want: left(relay.Pending, "", ""),
		}, {
			name: "admit: past the dedupe window", seed: Seed{UnknownFor: time.Hour}, due: -1, failed: true,
			settle: admit(func(a *relay.Admission) { a.Dedupe.Window = time.Minute }),
			want:   left(relay.Failed, relay.Unknowable, "dedupe", ownWords),
		}, {
			name: "admit: lapsed too often", seed: Seed{Lapses: 4}, due: -1, failed: true, settle: admit(nil),
			want: left(relay.Failed, relay.LeaseLost, "lapsed", ownWords),
		}, {
			name: "admit: expired", seed: Seed{Expires: -time.Second}, due: -1, failed: true, solved: true, settle: admit(nil),
			want: left(relay.Failed, relay.Expired, "expired", ownWords),
		}, {
			name: "admit: expired, and may have taken effect", seed: Seed{Expires: -time.Second, UnknownFor: time.Minute},
			due: -1, failed: true, settle: admit(nil),
			want: left(relay.Failed, relay.Unknowable, "expired", ownWords),
		}, {
			name: "admit: no policy", seed: Seed{Age: 1000 * time.Hour}, due: 10 * time.Minute, settle: admit(noPolicy),
			want: left(relay.Pending, "", "no_policy", ownWords),
		},
	}
}
