package program

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// HoldCommand is the first argument of this program where it is to run Hold.
const HoldCommand = "program-hold"

// The files of Hold, behind stdin, stdout and stderr.
const (
	gateFile   = 3
	reportFile = 4
)

// sessions starts programs whose sessions end with the relay. A session has to be known to the guard before its program can
// do anything, and there is no session before there is a process. So this very program is started first, in a session of its
// own; it waits for a word at its gate, and then becomes the program. Where the relay dies, it has either had that word, and
// the guard knows its session, or it finds the gate closed and ends.
type sessions struct {
	self  string
	guard *guard
}

func newSessions(self string, log *slog.Logger) (*sessions, error) {
	if self == "" {
		return nil, errors.New("program: Self is empty")
	}
	return &sessions{self, newGuard(self, log)}, nil
}

func (s *sessions) close(ctx context.Context) error { return s.guard.close(ctx) }

// held is a program that waits for its word.
type held struct {
	process
	gate *os.File
}

// hold starts a program as far as that.
func (s *sessions) hold(cmd *exec.Cmd) (*held, error) {
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
	cmd.Path = s.self
	cmd.ExtraFiles = []*os.File{behind, reporter}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		_, _ = gate.Close(), report.Close()
		return nil, err
	}
	gone, session := make(chan struct{}), cmd.Process.Pid
	go func() {
		defer close(gone)
		waitExit(session)
	}()
	h := &held{process{cmd: cmd, gone: gone, ended: func() { s.guard.forget(session) }, report: report}, gate}
	if err := s.guard.know(session); err != nil {
		h.abandon()
		return nil, err
	}
	return h, nil
}

// waitExit returns when a child has ended, and leaves it to be reaped: until then its id, and its session's, is nobody else's.
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
		return nil, errors.New("it ended before it was executed")
	}
	_ = h.gate.Close()
	return &h.process, nil
}

// abandon takes a program back that had no word yet.
func (h *held) abandon() {
	_ = h.gate.Close()
	if h.finish() {
		h.close()
	}
}

// Hold waits at its gate for a word from the relay that started it, and then becomes the program that args name: its path,
// and its argv. It returns only where it does not: with an error that the relay hears too, or because the relay is gone. Call
// it before anything takes a signal: those that end a program have to end this, too.
func Hold(args []string) error {
	if len(args) < 2 || !isPipe(gateFile) || !isPipe(reportFile) {
		return errors.New("a relay starts this by itself; there is nothing to do with it by hand")
	}
	closeOnExec()
	gate, report := os.NewFile(gateFile, "gate"), os.NewFile(reportFile, "report")
	if _, err := io.ReadFull(gate, make([]byte, 1)); err != nil {
		return errors.New("the relay is gone")
	}
	// What is taken here ends the program, as usual: execve(2) resets it. Under nohup it would be ignored otherwise.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT)
	// From this byte on the program may have begun, whatever becomes of us.
	if _, err := report.Write([]byte{'\n'}); err != nil {
		return errors.New("the relay is gone")
	}
	err := syscall.Exec(args[0], args[1:], os.Environ())
	_, _ = io.WriteString(report, args[0]+" cannot be executed: "+notExecuted(err))
	return err
}

// isPipe tells whether one of our files is a pipe, as a relay hands over.
func isPipe(file int) bool {
	var stat syscall.Stat_t
	return syscall.Fstat(file, &stat) == nil && stat.Mode&syscall.S_IFMT == syscall.S_IFIFO
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
