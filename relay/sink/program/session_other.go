//go:build unix && !linux

package program

import (
	"syscall"
	"time"
)

// killDelay is how long what got SIGKILL may take to end, and to be waited for with what holds its output.
const killDelay = 300*time.Millisecond + pipeDelay

// signalSession sends a signal to the group of a session's leader. What made another group of itself is not found here.
func signalSession(session int, s syscall.Signal) (alive bool) {
	_ = syscall.Kill(-session, s)
	return false
}

// endSession kills that group.
func endSession(session int, _ time.Time) { signalSession(session, syscall.SIGKILL) }
