package main

import (
	"fmt"
	"os"

	programsink "github.com/outboxd/outboxd/relay/sink/program"
)

// own runs what a relay starts of this very program beside the programs that it executes, where args say so. Nobody types
// them, and no signal is taken for them: what should end a program has to end it before it begins, too.
func own(args []string) (code int, asked bool) {
	if len(args) == 0 {
		return exitOK, false
	}
	switch args[0] {
	case programsink.HoldCommand:
		fmt.Fprintln(os.Stderr, "outboxd:", programsink.Hold(args[1:]))
		return exitUnexpected, true
	case programsink.GuardCommand:
		programsink.Guard(os.Stdin)
		return exitOK, true
	}
	return exitOK, false
}
