package relay

import "fmt"

// Rule is what the configuration of a destination makes of an answer, in place of what that comes to otherwise.
type Rule struct {
	Kind  Kind // done, retry, fail or unknown
	Limit int  // of a retry: at this many attempts it ends failed(rejected); 0: the budget alone
}

// Check says what of a rule cannot be.
func (r Rule) Check() error {
	switch r.Kind {
	case KindRetry:
		if r.Limit < 0 {
			return fmt.Errorf("%d attempts are negative", r.Limit)
		}
	case KindDone, KindFail, KindUnknown:
		if r.Limit != 0 {
			return fmt.Errorf("%s ends at once and has no number of attempts", r.Kind)
		}
	default:
		return fmt.Errorf("%.80q is none of done, retry, fail and unknown", r.Kind)
	}
	return nil
}

// Instead gives the outcome of a rule in place of the usual one, whose class and, of a fail, reason it keeps. answer is what
// the destination said, in words.
func (r Rule) Instead(usual Outcome, answer string) Outcome {
	if r.Kind == KindDone {
		return Done("")
	}
	o := Outcome{Kind: r.Kind, Class: usual.Class, Err: fmt.Sprintf("%s, %s by the outcomes of this destination", answer, r.Kind)}
	if o.Class == "" {
		o.Class = "other" // the usual one is done
	}
	if r.Kind == KindRetry {
		o.Limit = r.Limit
	}
	if r.Kind == KindFail {
		o.Reason = Rejected
		if usual.Kind == KindFail {
			o.Reason = usual.Reason
		}
	}
	return o
}
