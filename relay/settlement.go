package relay

import "time"

// Settlement is what is written back of one message under one lease. It is made by the named constructors of this file
// alone, which Decide, Admit and Release call, so that no wrong combination can be written; a Store reads it by Row.
type Settlement struct{ row Row }

// Row gives a Store the values to write.
func (s Settlement) Row() Row { return s.row }

// What names the step that a settlement writes; it is the outcome column of outbox_attempt where a row goes there.
type What string

// All steps that leave in_flight, but reclaim.
const (
	WhatDone    What = "done"
	WhatRetry   What = "retry"
	WhatFail    What = "fail"
	WhatUnknown What = "unknown"
	WhatUnsent  What = "unsent"
	WhatLapse   What = "lapse"   // cut off by us: not charged, counted as a lapse
	WhatRelease What = "release" // never started: due now, nothing counted
	WhatAdmit   What = "admit"   // turned back or ended before the send
)

// LapseRule says what a settlement does to the lapses column.
type LapseRule int

// The three things that can happen to lapses.
const (
	LapsesZero LapseRule = iota // an outcome came
	LapsesKeep                  // nothing went out
	LapsesAdd                   // cut off by us
)

// Row is a settlement as a Store writes it, guarded by ID, Lease and state in_flight.
type Row struct {
	ID          string
	Seq         int64
	Lease       LeaseID
	What        What
	State       State         // Pending, Finished or Failed
	Delay       time.Duration // Pending: due_at becomes the database's now and this, 0 or more
	Charge      bool          // attempts + 1
	Lapses      LapseRule
	MarkUnknown bool          // unknown_since becomes when the send began (Since), where it is NULL
	Reason      Reason        // Failed only; Expired also sets resolved_at
	ErrorClass  string        // "": the column stays
	LastError   string        // "": the column stays; at most 2 KiB, valid UTF-8 without NUL
	Result      string        // Finished only; at most 255 bytes
	Answer      string        // a long answer, for outbox_attempt; "" where there is none
	Went        bool          // something went out: Took and Since count, and all but a short done leave a row in outbox_attempt
	Took        time.Duration // how long the send took
	Since       time.Duration // since the send began, when Settle is called: its outcome may have waited for the database
	Status      int           // what was answered, for outbox_attempt; 0: none
	Emit        Emit          // Finished and Failed only: a message that tells so is written in the same transaction
}

// Recorded tells whether a row of outbox_attempt goes with this settlement: every send that went out and was not done,
// and done ones with a long answer.
func (r Row) Recorded() bool { return r.Went && (r.What != WhatDone || r.Answer != "") }

// Unsettled is a settlement that was not written.
type Unsettled struct {
	Settlement
	Why Why
	Err error // of Refused: what the database said
}

// Why says why a settlement was not written.
type Why int

// A lock passes, and a refusal may; a lost lease does not.
const (
	Locked  Why = iota // another session holds the row: try again later
	Refused            // a constraint or a trigger refuses this row alone: a person has to mend it, try again later
	Lost               // the message is under another lease, or is gone: nothing was changed, and nothing will be
)

// Release gives a message back of which nothing went out, at a stop or before its lease ends: due now, nothing counted.
func Release(c Claim) Settlement {
	r := row(c, WhatRelease, Pending)
	r.Lapses = LapsesKeep
	return Settlement{r}
}

// telling adds the message that tells the application, where the settled one is final.
func (s Settlement) telling(e Emit) Settlement {
	if s.row.State == Finished || s.row.State == Failed {
		s.row.Emit = e
	}
	return s
}

// Since is the settlement with how long ago its send began, now that it is to be written; of a send alone.
func (s Settlement) Since(d time.Duration) Settlement {
	if s.row.Went {
		s.row.Since = max(d, s.row.Took)
	}
	return s
}

func row(c Claim, what What, state State) Row {
	return Row{ID: c.ID, Seq: c.Seq, Lease: c.Lease, What: what, State: state}
}

// sent is the row of a send that went out and was answered, or whose answer was lost.
func sent(t Try, what What, state State) Row {
	r := row(t.Claim, what, state)
	r.Charge, r.Went, r.Took, r.Since, r.Status = true, true, t.Took, t.Took, t.Outcome.Status
	r.Answer = clean(t.Outcome.Answer, maxAnswerBytes)
	if what != WhatDone {
		r.ErrorClass, r.LastError = clean(t.Outcome.Class, maxClassBytes), clean(t.Outcome.Err, maxErrorBytes)
	}
	return r
}

func done(t Try) Settlement {
	r := sent(t, WhatDone, Finished)
	r.Result = clean(t.Outcome.Result, maxResultBytes)
	return Settlement{r}
}

func retry(t Try, delay time.Duration, charge bool) Settlement {
	r := sent(t, WhatRetry, Pending)
	r.Delay, r.Charge = delay, charge
	return Settlement{r}
}

func unknown(t Try, delay time.Duration, charge bool) Settlement {
	r := sent(t, WhatUnknown, Pending)
	r.Delay, r.Charge, r.MarkUnknown = delay, charge, true
	return Settlement{r}
}

// fail ends a message after a send; its outcome says what that send came to, reason why it is the last one.
func fail(t Try, reason Reason) Settlement {
	r := sent(t, What(t.Outcome.Kind), Failed)
	r.Reason, r.MarkUnknown = reason, reason == Unknowable
	return Settlement{r}
}

func unsent(t Try, delay time.Duration) Settlement {
	r := row(t.Claim, WhatUnsent, Pending)
	r.Delay, r.Lapses = delay, LapsesKeep
	r.ErrorClass, r.LastError = clean(t.Outcome.Class, maxClassBytes), clean(t.Outcome.Err, maxErrorBytes)
	return Settlement{r}
}

// lapse is a send that we cut off: it may have taken effect, and it was not its fault.
func lapse(t Try) Settlement {
	r := sent(t, WhatLapse, Pending)
	r.Charge, r.Lapses, r.MarkUnknown = false, LapsesAdd, true
	return Settlement{r}
}

// ended is a message that admit ends before the send.
func ended(c Claim, reason Reason, class, text string) Settlement {
	r := row(c, WhatAdmit, Failed)
	r.Lapses, r.Reason = LapsesKeep, reason
	r.ErrorClass, r.LastError = clean(class, maxClassBytes), clean(text, maxErrorBytes)
	return Settlement{r}
}

func turnedBack(c Claim, class string, delay time.Duration) Settlement {
	r := row(c, WhatAdmit, Pending)
	r.Lapses, r.ErrorClass, r.Delay = LapsesKeep, class, delay
	return Settlement{r}
}
