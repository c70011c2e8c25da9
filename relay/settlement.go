package relay

import "time"

// Settlement is what is written back of one message under one lease. Only Decide, Admit and Release make one, each by a
// named constructor of this file, so that no wrong combination can be written; a Store reads it by Row.
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
	MarkUnknown bool          // unknown_since becomes when the send began, where it is NULL
	Reason      Reason        // Failed only; Expired also sets resolved_at
	ErrorClass  string        // "": the column stays
	LastError   string        // "": the column stays; at most 2 KiB, valid UTF-8 without NUL
	Result      string        // Finished only; at most 255 bytes
	Answer      string        // a long answer, for outbox_attempt; "" where there is none
	Went        bool          // something went out: Took counts, and all but a short done leave a row in outbox_attempt
	Took        time.Duration // since the send began
}

// Recorded tells whether a row of outbox_attempt goes with this settlement: every send that went out and was not done,
// and done ones with a long answer.
func (r Row) Recorded() bool { return r.Went && (r.What != WhatDone || r.Answer != "") }

// Unsettled is a settlement that was not written.
type Unsettled struct {
	Settlement
	Why Why
}

// Why says why a settlement was not written.
type Why int

// A lock passes; a lost lease does not.
const (
	Locked Why = iota // another session holds the row: try again later
	Lost              // the message is under another lease, or is gone: nothing was changed, and nothing will be
)
