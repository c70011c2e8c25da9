package relay

import "time"

// Kind is one of the five things that a send can come to.
type Kind string

// What a send came to. relay/DESIGN.md, Decide.
const (
	KindDone    Kind = "done"    // acknowledged by the destination
	KindRetry   Kind = "retry"   // answered: not now
	KindFail    Kind = "fail"    // answered: these bytes never
	KindUnknown Kind = "unknown" // sent, and the answer was lost: it may have taken effect
	KindUnsent  Kind = "unsent"  // nothing went out
)

// Outcome is what one send came to, as its Sink reports it. Class is a short code of a closed set (timeout, refused, dns,
// tls, reset, http_4xx, http_5xx, throttled, auth, not_found, too_large, unroutable, broker, program, invalid, other).
// Err is one line for a person, without secrets and without payload. A retry with the Reason Unknowable is one that the
// destination would answer alike for ever under the same wire key: it ends the message at once, and counts for the breaker
// as every retry does.
type Outcome struct {
	Kind       Kind
	Reason     Reason        // of a fail: Rejected (also when empty) or TooLarge; of a retry: Unknowable, see below
	Class      string        // of all but done
	Err        string        // of all but done
	Status     int           // what was answered: the status of HTTP, the exit code of a program; 0: none, or not in numbers
	Result     string        // of a done: the destination's reference, at most 255 bytes are kept
	Answer     string        // a longer answer, at most 4 KiB are kept in outbox_attempt
	RetryAfter time.Duration // of a retry: the destination asked for no earlier try
	Limit      int           // of a retry: at this many attempts, this one included, it ends failed(rejected); 0: the budget alone
	Wide       bool          // it speaks of the whole destination (no broker, wrong password), not of this message's lane
	Hold       bool          // RetryAfter is about the whole destination: for so long, 5 min at most, nothing is claimed for it
	Ours       bool          // of a fail: the sink's own verdict, and nothing went out; no breaker hears of it, and it is not charged
	Pause      bool          // the destination asks for no more messages: it is paused until somebody resumes it
}

// Done says that the destination acknowledged this message; result is its reference, such as partition@offset.
func Done(result string) Outcome { return Outcome{Kind: KindDone, Result: result} }

// Retry says that the destination answered, and that the answer was: not now.
func Retry(class, err string) Outcome { return Outcome{Kind: KindRetry, Class: class, Err: err} }

// Fail says that the destination will never take these bytes.
func Fail(reason Reason, class, err string) Outcome {
	return Outcome{Kind: KindFail, Reason: reason, Class: class, Err: err}
}

// Unknown says that the message went out and that the answer was lost.
func Unknown(class, err string) Outcome { return Outcome{Kind: KindUnknown, Class: class, Err: err} }

// Unsent says that nothing went out.
func Unsent(class, err string) Outcome { return Outcome{Kind: KindUnsent, Class: class, Err: err} }
