package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is an outboxd that runs as a child.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *output
	exited         chan struct{} // closed when it has ended and all its output is here
}

// output collects what a child writes, and can be read meanwhile.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// environment is what a child sees: nothing of ours but what a program needs to run, and what the test gives.
func environment(extra []string) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir()}
	return append(env, extra...)
}

// configFile writes a configuration into a file of this test's own and returns its path.
func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "outboxd.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// startRelay starts `outboxd run` with a configuration and environment ("NAME=value"), and further arguments. It is
// killed at the end of the test if it still runs; its log is shown if the test failed.
func startRelay(t *testing.T, config string, env []string, args ...string) *process {
	t.Helper()
	return start(t, env, append([]string{"run", "--config", configFile(t, config)}, args...)...)
}

// start starts outboxd with these arguments and does not wait for it.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{stdout: &output{}, stderr: &output{}, exited: make(chan struct{})}
	p.cmd = exec.Command(path, args...)
	p.cmd.Env = environment(env)
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	p.cmd.SysProcAttr = childAttributes()
	started := make(chan error)
	go func() {
		// The kernel's "your parent died" is about the thread that started the child, so that thread has to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // its code is read from ProcessState
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("start outboxd %s: %v", strings.Join(args, " "), err)
	}
	t.Cleanup(func() { p.end(t) })
	return p
}

// end is the cleanup of start.
func (p *process) end(t *testing.T) {
	_ = p.cmd.Process.Kill() // most have ended by now
	<-p.exited
	log := p.stderr.String()
	if strings.Contains(log, "WARNING: DATA RACE") {
		t.Errorf("data race in outboxd %d", p.cmd.Process.Pid)
	}
	if t.Failed() {
		t.Logf("log of outboxd %d (%s):\n%s", p.cmd.Process.Pid, p.cmd.ProcessState, log)
	}
}

// signal sends a signal; a process that has already ended is a failure.
func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("send %s to outboxd %d: %v", s, p.cmd.Process.Pid, err)
	}
}

// kill ends it by SIGKILL and waits until it is gone.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	<-p.exited
}

// freeze stops it by SIGSTOP and waits until no thread of it runs; thaw lets it go on.
func (p *process) freeze(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGSTOP)
	eventually(t, patience, func() error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		if err == nil && !bytes.Contains(stat, []byte(") T ")) {
			err = fmt.Errorf("outboxd %d still runs", p.cmd.Process.Pid)
		}
		return err
	})
}

func (p *process) thaw(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGCONT)
}

// wait waits until it has ended by itself and returns its exit code; -1 if a signal ended it.
func (p *process) wait(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(within):
		t.Fatalf("outboxd %d still runs after %s", p.cmd.Process.Pid, within)
	}
	return p.cmd.ProcessState.ExitCode()
}

// terminate sends SIGTERM and waits for the exit code.
func (p *process) terminate(t *testing.T) int {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	return p.wait(t, patience)
}

// waitLog waits until its log contains a text.
func (p *process) waitLog(t *testing.T, text string) {
	t.Helper()
	eventually(t, patience, func() error {
		if strings.Contains(p.stderr.String(), text) {
			return nil
		}
		select {
		case <-p.exited:
			t.Fatalf("outboxd %d ended (%s) and its log has no %q", p.cmd.Process.Pid, p.cmd.ProcessState, text)
		default:
		}
		return fmt.Errorf("no %q in the log", text)
	})
}

// outboxd runs a command to its end and returns what it printed and its exit code.
func outboxd(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = environment(env)
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatalf("outboxd %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
