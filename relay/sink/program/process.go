//go:build unix

package program

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is a program at work, with a process group of its own.
type process struct {
	cmd    *exec.Cmd
	gone   <-chan struct{} // closed when the program itself has ended
	ended  func()          // called when its group is killed, before the group's id can be another's
	report *os.File        // says why it could not be executed, if so; nil: nobody reports
}

// signal sends a signal to all of the group.
func (p *process) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }

// wait waits until the program has ended, and ends it in time: Send says when.
func (p *process) wait(ctx context.Context, grace, cutOff time.Duration) end {
	var term <-chan time.Time
	if deadline, limited := ctx.Deadline(); limited {
		term = time.After(time.Until(deadline) - grace)
	}
	var e end
	select {
	case <-p.gone:
	case <-term:
		e.told = true
		p.signal(syscall.SIGTERM)
		select {
		case <-p.gone:
		case <-ctx.Done():
		}
	case <-ctx.Done():
		e.told, e.cutOff = true, true
		p.signal(syscall.SIGTERM)
		select {
		case <-p.gone:
		case <-time.After(cutOff):
		}
	}
	p.finish()
	p.read(&e)
	return e
}

// finish kills what is left of the group, and reaps it. No fork escapes: one that is under way when the signal comes is
// begun again after it (fork(2), ERESTARTNOINTR).
func (p *process) finish() {
	p.signal(syscall.SIGKILL)
	<-p.gone
	p.ended()
	_ = p.cmd.Wait() // the code is in ProcessState; what became of stdin and stdout does not count
	reap(p.cmd.Process.Pid)
}

// read says how the program ended.
func (p *process) read(e *end) {
	e.code = p.cmd.ProcessState.ExitCode()
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.signal = fmt.Sprintf("signal %d (%s)", status.Signal(), status.Signal())
	}
	if p.report != nil {
		why, _ := io.ReadAll(p.report) // its writers have ended
		_ = p.report.Close()
		e.unstarted = string(why)
	}
}

// reap takes the rest of a group where we became its parent, as the first process of a container does; elsewhere there is
// nothing to take.
func reap(group int) {
	for {
		if _, err := syscall.Wait4(-group, nil, 0, nil); err != nil && err != syscall.EINTR {
			return
		}
	}
}
