package program

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
)

// HoldCommand is the first argument of this program where it is to run Hold.
const HoldCommand = "program-hold"

// The files of Hold, behind stdin, stdout and stderr.
const (
	gateFile   = 3
	reportFile = 4
)

// groups starts programs whose groups end with the relay. A group has to be known to the guard before its program can do
// anything, and there is no group before there is a process. So this very program is started first, in a group of its own;
// it waits for a word at its gate, and then becomes the program. Where the relay dies, it has either had that word, and the
// guard knows its group, or it finds the gate closed and ends.
type groups struct {
	self  string
	guard *guard
}

func newGroups(self string, log *slog.Logger) (*groups, error) {
	if self == "" {
		return nil, errors.New("program: Self is empty")
	}
	return &groups{self, newGuard(self, log)}, nil
}

func (g *groups) close(ctx context.Context) error { return g.guard.close(ctx) }

// held is a program that waits for its word.
type held struct {
	process
	gate *os.File
}

// hold starts a program as far as that.
func (g *groups) hold(cmd *exec.Cmd) (*held, error) {
	behind, gate, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer behind.Close()
	report, reporter, err := os.Pipe()
	if err != nil {
		_ = gate.Close()
		return nil, err
	}
	defer reporter.Close()
	cmd.Args = append([]string{"outboxd", HoldCommand, cmd.Path}, cmd.Args...)
	cmd.Path = g.self
	cmd.ExtraFiles = []*os.File{behind, reporter}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		_, _ = gate.Close(), report.Close()
		return nil, err
	}
	gone, group := make(chan struct{}), cmd.Process.Pid
	go func() {
		defer close(gone)
		waitExit(group)
	}()
	h := &held{process{cmd: cmd, gone: gone, ended: func() { g.guard.forget(group) }, report: report}, gate}
	if err := g.guard.know(group); err != nil {
		h.abandon()
		return nil, err
	}
	return h, nil
}

// waitExit returns when a child has ended, and leaves it to be reaped: until then its id, and its group's, is nobody else's.
func waitExit(pid int) {
	const idIsPid = 1 // P_PID of waitid(2)
	for {
		_, _, err := syscall.Syscall6(syscall.SYS_WAITID, idIsPid, uintptr(pid), 0, syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if err != syscall.EINTR {
			return
		}
	}
}

// release gives the word.
func (h *held) release() (*process, error) {
	if _, err := h.gate.Write([]byte{'\n'}); err != nil {
		h.abandon()
		return nil, err
	}
	_ = h.gate.Close()
	return &h.process, nil
}

// abandon takes a program back that had no word yet.
func (h *held) abandon() {
	_ = h.gate.Close()
	h.finish()
	_ = h.report.Close()
}

// Hold waits at its gate for a word from the relay that started it, and then becomes the program that args name: its path,
// and its argv. It returns only where it does not: with an error that the relay hears too, or because the relay is gone.
func Hold(args []string) error {
	closeOnExec()
	gate, report := os.NewFile(gateFile, "gate"), os.NewFile(reportFile, "report")
	if len(args) < 2 || gate == nil || report == nil {
		return errors.New("a relay starts this by itself; there is nothing to do with it by hand")
	}
	if _, err := io.ReadFull(gate, make([]byte, 1)); err != nil {
		return errors.New("the relay is gone")
	}
	err := syscall.Exec(args[0], args[1:], os.Environ())
	_, _ = io.WriteString(report, args[0]+" cannot be executed: "+notExecuted(err))
	return err
}

// closeOnExec lets the program have no other file than stdin, stdout and stderr, also none of those that whoever started the
// relay left open.
func closeOnExec() {
	const closeRange, setCloseOnExec = 436, 1 << 2 // close_range(2), of the same number everywhere; the flag came with Linux 5.11
	if _, _, err := syscall.RawSyscall(closeRange, gateFile, 1<<32-1, setCloseOnExec); err != 0 {
		syscall.CloseOnExec(gateFile)
		syscall.CloseOnExec(reportFile)
	}
}

// notExecuted says why a program that is there could not be executed.
func notExecuted(err error) string {
	switch {
	case errors.Is(err, syscall.ENOENT):
		return "what interprets it does not exist; see its first line"
	case errors.Is(err, syscall.ENOEXEC):
		return "it is neither a program for this system nor a script that begins with #!"
	}
	return err.Error()
}
