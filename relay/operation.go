package relay

import "time"

// Op is what an operation does.
type Op string

// All that operators can ask for.
const (
	OpReplay   Op = "replay"    // sends final messages again, in a new life
	OpCorrect  Op = "correct"   // gives pending or failed messages the payloads of outbox_correction
	OpRetryNow Op = "retry_now" // makes due at once what waits for its next try
	OpCancel   Op = "cancel"    // ends pending messages
	OpResolve  Op = "resolve"   // says that failed messages need nothing more
	OpPause    Op = "pause"     // keeps a destination, a routing key, a type or everything from being sent
	OpResume   Op = "resume"    // ends a pause
	OpDrill    Op = "drill"     // tells what somebody sent again by hand and what came of it; relays only say that they saw it

	// What no relay does: they tell what somebody did.
	OpPurge    Op = "purge"    // removed what is kept long enough
	OpInstance Op = "instance" // said which instance the outbox belongs to
)

// Steers tells that the operation is about what relays may do, not about messages.
func (o Op) Steers() bool { return o == OpPause || o == OpResume }

// states are those of the messages that an operation is for, the usual one first.
func (o Op) states() []State {
	switch o {
	case OpReplay:
		return []State{Failed, Finished}
	case OpCorrect:
		return []State{Failed, Pending}
	case OpResolve:
		return []State{Failed}
	case OpRetryNow, OpCancel:
		return []State{Pending}
	case OpPause, OpResume, OpPurge, OpInstance, OpDrill:
	}
	return nil
}

// Operation is a row of outbox_operation: what somebody asked for.
type Operation struct {
	ID     string
	Op     Op
	Actor  string
	Note   string
	DryRun bool  // count only
	Order  Order // of its filter
	Err    error // why it cannot be done: what is wrong with the filter
}

// Scope is what a Store looks through for the messages of an operation: those of the ids, or those in the one state that
// it is for. What of them may be changed Judge says.
func (o Operation) Scope() Filter {
	f := o.Order.Filter
	switch {
	case len(f.IDs) > 0 || o.Op == OpCorrect:
		f.State = ""
	case f.State == "":
		f.State = o.Op.states()[0]
	}
	return f
}

// Step is what one step of an operation did.
type Step struct {
	Affected  int           // messages that were changed
	Finished  bool          // the operation is applied
	Refused   bool          // it is, and could not be done
	Elsewhere bool          // another relay is at it, or has finished it
	Wait      time.Duration // its rate allows no more before
}

// Detail is the detail column: what an operation left as it was, and why.
type Detail struct {
	Skipped map[Skip]int `json:"skipped,omitempty"`
	Refused string       `json:"refused,omitempty"`   // it cannot be done, and nothing was
	Frees   string       `json:"retry_now,omitempty"` // of a resume: the operation that makes due what it frees
}

// Add counts n messages that were left as they are.
func (d *Detail) Add(why Skip, n int) {
	if n > 0 && d.Skipped == nil {
		d.Skipped = map[Skip]int{}
	}
	if n > 0 {
		d.Skipped[why] += n
	}
}

// AddUnmatched counts, at the end, which of so many named messages, by ids or corrections, there are none of that the filter
// matches.
func (d *Detail) AddUnmatched(named, affected int) {
	for _, n := range d.Skipped {
		affected += n
	}
	d.Add(SkipUnmatched, named-affected)
}

// Progress is the progress column: where an operation is. Whoever takes the next step goes on there.
type Progress struct {
	Place []string `json:"place"` // in the order in which the Store walks
	At    int64    `json:"at"`    // when a step last changed something, in microseconds since 1970 by the database's clock

	// Of correct: what was in flight or locked when its turn came, and how many steps found it so since the walk ended.
	Later []Later `json:"later,omitempty"`
	Tries int     `json:"tries,omitempty"`
}

// Allow tells how many messages a step may change, at most the most given, after the operation has changed so many; or how
// long to wait until its rate allows another one. since is how long the last change is ago, below 0 before the first one.
func (o Order) Allow(most, affected int, since time.Duration) (n int, wait time.Duration) {
	if o.Limit > 0 {
		most = min(most, o.Limit-affected)
	}
	if o.Rate <= 0 || most <= 0 {
		return most, 0
	}
	each := time.Duration(float64(time.Second) / o.Rate)
	burst := max(time.Second, each)
	if since < 0 || since > burst {
		since = burst
	}
	if since < each {
		return 0, each - since
	}
	return min(most, max(1, int(since.Seconds()*o.Rate))), 0
}

// Reached tells that an operation which has changed so many messages may change no more.
func (o Order) Reached(affected int) bool { return o.Limit > 0 && affected >= o.Limit }
