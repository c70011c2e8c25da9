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

// process is a program at work, as the leader of a session of its own.
type process struct {
	cmd    *exec.Cmd
	gone   <-chan struct{} // closed when the program itself has ended
	ended  func()          // called when its session is killed, before the session's id can be another's
	report *os.File        // says whether it was executed, and if not why; nil: nobody reports
}

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
		if p.hasEnded() {
			break
		}
		e.told = true
		signalSession(p.session(), syscall.SIGTERM)
		select {
		case <-p.gone:
		case <-ctx.Done():
		}
	case <-ctx.Done():
		if p.hasEnded() {
			break
		}
		e.told, e.cutOff = true, true
		signalSession(p.session(), syscall.SIGTERM)
		select {
		case <-p.gone:
		case <-time.After(cutOff):
		}
	}
	if !p.finish() {
		e.stuck = true
		return e
	}
	p.read(&e)
	return e
}

// hasEnded tells whether the program has ended by itself before it could be told to: after a freeze of the relay its time may
// be over as well, and its exit code counts all the same.
func (p *process) hasEnded() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// session is that of the program, and the number of its leader's group.
func (p *process) session() int { return p.cmd.Process.Pid }

// finish kills what is left of the session and reaps the program. False: the program does not end, and is reaped once it
// does; its output is not to be read.
func (p *process) finish() bool {
	late := time.Now().Add(killDelay)
	_ = syscall.Kill(-p.session(), syscall.SIGKILL)
	select {
	case <-p.gone:
	case <-time.After(killDelay):
		signalSession(p.session(), syscall.SIGKILL)
		go func() {
			<-p.gone
			p.reap()
			p.close()
		}()
		return false
	}
	endSession(p.session(), late)
	p.reap()
	return true
}

// reap lets the session's id go.
func (p *process) reap() {
	p.ended()
	_ = p.cmd.Wait() // the code is in ProcessState; what became of stdin and stdout does not count
}

func (p *process) close() {
	if p.report != nil {
		_ = p.report.Close()
	}
}

// read says how the program ended.
func (p *process) read(e *end) {
	e.code = p.cmd.ProcessState.ExitCode()
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.signal = fmt.Sprintf("signal %d (%s)", status.Signal(), status.Signal())
	}
	if p.report == nil {
		return
	}
	said, _ := io.ReadAll(p.report) // its writers have ended
	p.close()
	switch {
	case len(said) == 0:
		e.unstarted = "it ended before it was executed, " + e.how()
	case len(said) > 1:
		e.unstarted = string(said[1:])
	}
}
