package program

import (
	"strconv"

	"github.com/outboxd/outboxd/relay"
)

// The classes of outcomes that this destination reports.
const (
	classProgram = "program"
	classAuth    = "auth" // of a missing permission: its replay is under the old key
	classTimeout = "timeout"
	classInvalid = "invalid" // a message that no variable can hold
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
	stuck     bool   // SIGKILL did not end it
	unstarted string // why it was not executed, after all
}

// of says what an end is.
func (c Config) of(e end) relay.Outcome {
	switch {
	case e.unstarted != "" && e.told:
		return relay.Unsent(classTimeout, e.unstarted)
	case e.unstarted != "":
		return relay.Unsent(classProgram, e.unstarted)
	case e.told:
		// Whatever it ended with, SIGTERM brought that about: it does not say how far the program had come.
		return relay.Unknown(classTimeout, e.words())
	case e.code < 0:
		return relay.Unknown(classProgram, e.words())
	}
	return c.ofCode(e.code)
}

func (e end) words() string {
	switch {
	case e.cutOff:
		return "cut off by a stop or the end of its lease, " + e.how()
	case e.told:
		return "no end in time, " + e.how()
	}
	return e.how()
}

func (e end) how() string {
	switch {
	case e.stuck:
		return "and it does not end by SIGKILL: it runs as a user whose processes the relay may not kill, or hangs in the system"
	case e.code < 0:
		return "ended by " + e.signal
	}
	return "exit code " + strconv.Itoa(e.code)
}

func (c Config) ofCode(code int) relay.Outcome {
	o := codeRule(code)
	if rule, named := c.Outcomes[strconv.Itoa(code)]; named {
		o = rule.Instead(o, "exit code "+strconv.Itoa(code))
	}
	o.Status = code
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
