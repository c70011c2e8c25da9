package integration

import "syscall"

// childAttributes lets the kernel kill a child whose starter is gone: a test that panics or runs out of time ends
// without its cleanups.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
