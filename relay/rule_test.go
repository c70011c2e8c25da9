package relay_test

import (
	"testing"

	"github.com/outboxd/outboxd/relay"
)

func TestRule(t *testing.T) {
	t.Parallel()
	const says = "HTTP 404 Not Found, "
	for name, c := range map[string]struct {
		rule  relay.Rule
		usual relay.Outcome
		want  relay.Outcome
	}{
		"done":                {relay.Rule{Kind: relay.KindDone}, relay.Retry("not_found", "x"), relay.Done("")},
		"unknown":             {relay.Rule{Kind: relay.KindUnknown}, relay.Retry("not_found", "x"), relay.Unknown("not_found", says+"unknown by the outcomes of this destination")},
		"fail":                {relay.Rule{Kind: relay.KindFail}, relay.Retry("not_found", "x"), relay.Fail(relay.Rejected, "not_found", says+"fail by the outcomes of this destination")},
		"fail keeps a reason": {relay.Rule{Kind: relay.KindFail}, relay.Fail(relay.TooLarge, "too_large", "x"), relay.Fail(relay.TooLarge, "too_large", says+"fail by the outcomes of this destination")},
		"retry":               {relay.Rule{Kind: relay.KindRetry}, relay.Outcome{Kind: relay.KindRetry, Class: "auth", Limit: 3}, relay.Retry("auth", says+"retry by the outcomes of this destination")},
		"retry with a limit":  {relay.Rule{Kind: relay.KindRetry, Limit: 5}, relay.Done(""), relay.Outcome{Kind: relay.KindRetry, Class: "other", Err: says + "retry by the outcomes of this destination", Limit: 5}},
	} {
		if err := c.rule.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := c.rule.Instead(c.usual, "HTTP 404 Not Found"); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	for want, rule := range map[string]relay.Rule{
		"-1 attempts are negative":                          {Kind: relay.KindRetry, Limit: -1},
		"done ends at once and has no number of attempts":   {Kind: relay.KindDone, Limit: 1},
		`"unsent" is none of done, retry, fail and unknown`: {Kind: relay.KindUnsent},
		`"" is none of done, retry, fail and unknown`:       {Limit: 5},
	} {
		if err := rule.Check(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
