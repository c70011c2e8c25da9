package relay

import (
	"slices"
	"time"
)

// Candidate is a message that an operation looks at, as it is while the operation holds its row.
type Candidate struct {
	ID         string
	Seq        int64
	RoutingKey string
	Type       string
	State      State
	Reason     Reason
	ErrorClass string
	Lease      LeaseID
	Due        bool          // pending, and due already
	Resolved   bool          // failed, and needs nothing more
	Went       bool          // something of this life went out, or may have
	Late       bool          // it came to its state after the operation was asked for: it was sent since
	Changed    bool          // of correct: the payload is not the one that the correction was made from
	Unknown    bool          // unknown_since is set
	UnknownFor time.Duration // since unknown_since
}

// Skip says why an operation leaves a message as it is.
type Skip string

// The closed set of skips. A message in a state that the operation is not for is skipped with the state's name.
const (
	SkipLate      Skip = "late"      // it came to its state after the operation was asked for
	SkipResolved  Skip = "resolved"  // it needs nothing more; named by its id or a reason, it is replayed
	SkipChanged   Skip = "changed"   // its payload is not the one that the correction was made from: somebody else corrected it
	SkipUnknown   Skip = "unknown"   // an earlier send may have taken effect: look at the receiver, then force
	SkipDue       Skip = "due"       // it is due already
	SkipDelayed   Skip = "delayed"   // the application set its time; named by its id, it is due now
	SkipLocked    Skip = "locked"    // another session holds its row, or removed it
	SkipRefused   Skip = "refused"   // a constraint or a trigger of the database refuses the change
	SkipUnmatched Skip = "unmatched" // an id that names no message, or one that the rest of the filter leaves out
	SkipNotPaused Skip = "unpaused"  // of a resume: nothing of that name is paused
)

// Effect is what an operation does to a message.
type Effect string

// All effects.
const (
	Skipped   Effect = ""          // none
	Revived   Effect = "revived"   // pending, in a new life: counters 0, replays + 1
	Corrected Effect = "corrected" // another payload, and nothing else
	Hastened  Effect = "hastened"  // due now
	Withdrawn Effect = "withdrawn" // failed for reason cancelled, and resolved
	Resolved  Effect = "resolved"  // needs nothing more
)

// Verdict is what becomes of one message. It is made by Judge alone, and comparable, so that a Store changes all messages
// of one verdict at once.
type Verdict struct {
	Effect        Effect
	Why           Skip // of Skipped
	Payload       bool // its payload becomes that of outbox_correction, where the old one is kept
	NewKey        bool // of Revived: it gets another wire key
	ForgetUnknown bool // of Revived: unknown_since is cleared
	KeepExpiry    bool // of Revived: expires_at stays
	Emit          Emit // of Withdrawn: a message that tells so is written in the same transaction
}

func skip(why Skip) Verdict { return Verdict{Why: why} }

// Judge decides what an operation does to a message: the rules of relay/DESIGN.md, Operations. dedupe is the memory of the
// message's destination; zero: it needs none, or nobody knows. Judge is pure.
func Judge(o Operation, c Candidate, dedupe Dedupe) Verdict {
	switch o.Op {
	case OpReplay:
		return judgeReplay(o.Order, c, dedupe)
	case OpCorrect:
		return judgeCorrect(o.Order, c)
	case OpRetryNow:
		return judgeRetryNow(o.Order, c)
	case OpCancel:
		if c.State == Pending {
			return Verdict{Effect: Withdrawn}
		}
	case OpResolve:
		return judgeResolve(c)
	case OpPause, OpResume, OpPurge, OpInstance, OpDrill:
	}
	return skip(Skip(c.State))
}

// judgeReplay: a receiver gives the old answer to the old key. So what it rejected goes out under a new one, and all else
// under the old one, which makes a repeat safe as long as the receiver remembers it.
func judgeReplay(o Order, c Candidate, dedupe Dedupe) Verdict {
	state := o.State
	if state == "" {
		state = Failed
	}
	newKey := o.WireKey == NewKey || o.WireKey == "" && c.rejected()
	switch {
	case c.State != state:
		return skip(Skip(c.State))
	case c.Late:
		return skip(SkipLate)
	case c.Resolved && len(o.IDs) == 0 && o.Reason == "":
		return skip(SkipResolved)
	case c.Unknown && !o.Force && (newKey || dedupe.over(c.UnknownFor)):
		return skip(SkipUnknown)
	}
	return Verdict{Effect: Revived, NewKey: newKey, ForgetUnknown: newKey || o.Force}
}

// rejected tells that the destination answered: these bytes never. A missing permission says nothing about them.
func (c Candidate) rejected() bool {
	return c.Reason == TooLarge || c.Reason == Rejected && c.ErrorClass != "auth"
}

// judgeCorrect: what was made from another payload than the message has now would undo what somebody else mended. Where
// nothing went out, the payload changes and nothing else. Where the old one may have been seen, the new one needs another
// key, and a new life.
func judgeCorrect(o Order, c Candidate) Verdict {
	switch {
	case !slices.Contains(OpCorrect.states(), c.State) || o.State != "" && c.State != o.State:
		return skip(Skip(c.State))
	case c.Changed:
		return skip(SkipChanged)
	case c.Unknown && !o.Force:
		return skip(SkipUnknown)
	case c.State == Pending && !c.Went && !c.Unknown:
		return Verdict{Effect: Corrected, Payload: true}
	}
	newKey := o.WireKey != SameKey
	return Verdict{Effect: Revived, Payload: true, NewKey: newKey, ForgetUnknown: newKey || o.Force, KeepExpiry: c.State == Pending}
}

func judgeRetryNow(o Order, c Candidate) Verdict {
	switch {
	case c.State != Pending:
		return skip(Skip(c.State))
	case c.Late:
		return skip(SkipLate) // Its next try comes to lie ahead of the operation again and again.
	case c.Due:
		return skip(SkipDue)
	case c.Lease == 0 && len(o.IDs) == 0:
		return skip(SkipDelayed)
	}
	return Verdict{Effect: Hastened}
}

func judgeResolve(c Candidate) Verdict {
	switch {
	case c.State != Failed:
		return skip(Skip(c.State))
	case c.Late:
		return skip(SkipLate)
	case c.Resolved:
		return skip(SkipResolved)
	}
	return Verdict{Effect: Resolved}
}
