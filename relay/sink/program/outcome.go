package program

import (
	"fmt"
	"strconv"

	"github.com/outboxd/outboxd/relay"
)

// The classes of outcomes that this destination reports.
const (
	classProgram = "program"
	classAuth    = "auth" // of a missing permission: its replay is under the old key
	classTimeout = "timeout"
	classInvalid = "invalid" // a message that no variable can hold
	classOther   = "other"   // of an exit code 0 that the configuration takes for something else
)

// permissionLimit is how many attempts an exit code 77 may cost: a missing permission seldom comes by waiting.
const permissionLimit = 3

// Exit codes with a meaning of their own: sysexits.h of BSD, and those of a shell that cannot execute what it was told to
// (POSIX.1-2017, Shell Command Language, 2.8.2).
const (
	exitUsage      = 64
	exitData       = 65
	exitPermission = 77
	exitNoExec     = 126
	exitNotFound   = 127
)

// end is how a program ended.
type end struct {
	code      int    // its exit code; -1: a signal ended it
	signal    string // that ended it, in words
	told      bool   // we sent it SIGTERM
	cutOff    bool   // because the send's context ended before its deadline
	unstarted string // why it could not be executed, after all
}

// of says what an end is.
func (c Config) of(e end) relay.Outcome {
	switch {
	case e.unstarted != "":
		return relay.Unsent(classProgram, e.unstarted)
	case e.told:
		// An exit code that SIGTERM brought about tells nothing, but that all is done.
		if o := c.ofCode(e.code); o.Kind == relay.KindDone {
			return o
		}
		return relay.Unknown(classTimeout, e.words())
	case e.code < 0:
		return relay.Unknown(classProgram, e.words())
	}
	return c.ofCode(e.code)
}

func (e end) words() string {
	how := "exit code " + strconv.Itoa(e.code)
	if e.code < 0 {
		how = "ended by " + e.signal
	}
	switch {
	case e.cutOff:
		return "cut off by a stop or the end of its lease, " + how
	case e.told:
		return "no end in time, " + how
	}
	return how
}

func (c Config) ofCode(code int) relay.Outcome {
	o := codeRule(code)
	if rule, named := c.Outcomes[strconv.Itoa(code)]; named {
		o = rule.instead(o, code)
	}
	o.Status = code
	return o
}

// instead gives the outcome of a rule in place of the usual one.
func (r Rule) instead(usual relay.Outcome, code int) relay.Outcome {
	if r.Kind == relay.KindDone {
		return relay.Done("")
	}
	o := relay.Outcome{Kind: r.Kind, Class: usual.Class, Err: fmt.Sprintf("exit code %d, %s by the outcomes of this destination", code, r.Kind)}
	if r.Kind == relay.KindRetry {
		o.Limit = r.Limit
	}
	if r.Kind == relay.KindFail {
		o.Reason = relay.Rejected
	}
	if o.Class == "" {
		o.Class = classOther
	}
	return o
}

// codeRule says what an exit code means. docs/outcomes.md has the same with all that follows.
//
//	outcome  exit codes
//	done     0
//	fail     64, 65
//	retry    all others, 69, 75 and 78 among them; 77 ends failed(rejected) at the third attempt
//	unsent   126, 127
func codeRule(code int) relay.Outcome {
	text := "exit code " + strconv.Itoa(code)
	switch code {
	case 0:
		return relay.Done("")
	case exitUsage, exitData:
		return relay.Fail(relay.Rejected, classProgram, text)
	case exitPermission:
		return relay.Outcome{Kind: relay.KindRetry, Class: classAuth, Err: text, Limit: permissionLimit}
	case exitNoExec, exitNotFound:
		return relay.Unsent(classProgram, text)
	}
	return relay.Retry(classProgram, text)
}
