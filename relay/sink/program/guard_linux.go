package program

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// GuardCommand is the first argument of this program where it is to run Guard.
const GuardCommand = "program-guard"

const (
	guardDelay = time.Second // that a guard may take to read what it is told, and to end what is left
	guardLives = time.Second // that lie between two starts of a guard, but for those that a program asks for
)

// Guard reads sessions from r, "+SESSION" for one that is there and "-SESSION" for one that is no more, a line each, and
// kills those that are left when r ends: the relay has the other end, and does not close it while it lives.
func Guard(r io.Reader) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) // those are the relay's; this ends after it
	left := map[int]bool{}
	for lines := bufio.NewScanner(r); lines.Scan(); {
		session, err := strconv.ParseInt(lines.Text(), 10, 32)
		switch {
		case err != nil:
		case session > 1:
			left[int(session)] = true
		default:
			delete(left, -int(session))
		}
	}
	for session := range left {
		_ = syscall.Kill(-session, syscall.SIGKILL) // most have nothing beside this group
	}
	late := time.Now().Add(guardDelay)
	for session := range left {
		endSession(session, late)
	}
}

// guard is the process that runs Guard, as the relay sees it. It is started with the first program, and anew where it ends.
// Safe for concurrent use.
type guard struct {
	self string
	log  *slog.Logger

	mu       sync.Mutex
	sessions map[int]bool
	cmd      *exec.Cmd
	pipe     *os.File      // nil: there is no guard
	since    time.Time     // when the last one was started
	ended    chan struct{} // closed when it has ended
	pending  bool          // another one is about to be started
	closed   bool
}

func newGuard(self string, log *slog.Logger) *guard {
	return &guard{self: self, log: log, sessions: map[int]bool{}}
}

// know tells the guard of a session. When it returns without an error, that session ends with the relay: what is in the pipe
// is read, whatever becomes of us.
func (g *guard) know(session int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errors.New("the destination is closed")
	}
	g.sessions[session] = true
	if g.pipe != nil && g.tell(+session) == nil {
		return nil
	}
	g.kill()
	err := g.start()
	if err != nil {
		delete(g.sessions, session)
		g.again()
	}
	return err
}

// forget tells the guard that a session is no more.
func (g *guard) forget(session int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.sessions, session)
	if g.pipe != nil && g.tell(-session) != nil {
		g.kill()
		g.again()
	}
}

// tell writes one line.
func (g *guard) tell(session int) error {
	_ = g.pipe.SetWriteDeadline(time.Now().Add(guardDelay)) // one that was stopped reads nothing
	_, err := fmt.Fprintf(g.pipe, "%+d\n", session)
	return err
}

// start starts a guard and tells it all sessions.
func (g *guard) start() error {
	g.since = time.Now()
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	cmd := &exec.Cmd{
		Path: g.self, Args: []string{"outboxd", GuardCommand}, Env: []string{}, Dir: "/", Stdin: theirs,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // no terminal's Ctrl-C reaches it
	}
	if err := cmd.Start(); err != nil {
		_ = ours.Close()
		return fmt.Errorf("no guard: %w", err)
	}
	ended := make(chan struct{})
	g.cmd, g.pipe, g.ended = cmd, ours, ended
	go g.watch(cmd, ours, ended)
	for session := range g.sessions {
		if err := g.tell(session); err != nil {
			g.kill()
			return fmt.Errorf("no guard: %w", err)
		}
	}
	return nil
}

// again starts another guard where programs are at work without one: at once, or when the last one was started guardLives
// ago.
func (g *guard) again() {
	if g.pending {
		return
	}
	g.pending = true
	time.AfterFunc(max(0, guardLives-time.Since(g.since)), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.pending = false
		if g.pipe != nil || g.closed || len(g.sessions) == 0 {
			return
		}
		if err := g.start(); err != nil {
			g.log.Error("the programs at work would outlive the relay", "err", err)
			g.again()
			return
		}
		g.log.Warn("the guard of the programs ended, and was started again")
	})
}

// watch waits for the end of a guard.
func (g *guard) watch(cmd *exec.Cmd, pipe *os.File, ended chan struct{}) {
	defer close(ended)
	_ = cmd.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pipe != pipe {
		return // it was to end
	}
	_ = g.pipe.Close()
	g.pipe = nil
	g.again()
}

// kill ends a guard that does not listen, before the end of its pipe can tell it to kill what is at work.
func (g *guard) kill() {
	if g.pipe != nil {
		_ = g.cmd.Process.Kill() // it may have ended
		_ = g.pipe.Close()
		g.pipe = nil
	}
}

// close ends the guard, and with it what is still at work.
func (g *guard) close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	ended := g.ended
	if g.pipe != nil {
		_ = g.pipe.Close()
		g.pipe = nil
	}
	g.mu.Unlock()
	if ended == nil {
		return nil
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("program: the guard does not end: %w", ctx.Err())
	}
}
