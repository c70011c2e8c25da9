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
	guardDelay = time.Second // that a guard may take to read what it is told
	guardLives = time.Second // one that ended sooner is started anew with the next program, and not by itself
)

// Guard reads process groups from r, "+GROUP" for one that is there and "-GROUP" for one that is no more, a line each, and
// kills those that are left when r ends: the relay has the other end, and does not close it while it lives.
func Guard(r io.Reader) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) // those are the relay's; this ends after it
	groups := map[int]bool{}
	for lines := bufio.NewScanner(r); lines.Scan(); {
		group, err := strconv.Atoi(lines.Text())
		switch {
		case err != nil:
		case group > 1:
			groups[group] = true
		default:
			delete(groups, -group)
		}
	}
	for group := range groups {
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
}

// guard is the process that runs Guard, as the relay sees it. It is started with the first program, and anew where it ends.
// Safe for concurrent use.
type guard struct {
	self string
	log  *slog.Logger

	mu     sync.Mutex
	groups map[int]bool
	cmd    *exec.Cmd
	pipe   *os.File      // nil: there is no guard
	since  time.Time     // when it was started
	ended  chan struct{} // closed when it has ended
	closed bool
}

func newGuard(self string, log *slog.Logger) *guard {
	return &guard{self: self, log: log, groups: map[int]bool{}}
}

// know tells the guard of a group. When it returns without an error, that group ends with the relay: what is in the pipe is
// read, whatever becomes of us.
func (g *guard) know(group int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errors.New("the destination is closed")
	}
	g.groups[group] = true
	if g.pipe != nil && g.tell(+group) == nil {
		return nil
	}
	g.kill()
	err := g.start()
	if err != nil {
		delete(g.groups, group)
	}
	return err
}

// forget tells the guard that a group is no more.
func (g *guard) forget(group int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.groups, group)
	if g.pipe != nil && g.tell(-group) != nil {
		g.kill()
	}
}

// tell writes one line.
func (g *guard) tell(group int) error {
	_ = g.pipe.SetWriteDeadline(time.Now().Add(guardDelay)) // one that was stopped reads nothing
	_, err := fmt.Fprintf(g.pipe, "%+d\n", group)
	return err
}

// start starts a guard and tells it all groups.
func (g *guard) start() error {
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
	g.cmd, g.pipe, g.since, g.ended = cmd, ours, time.Now(), ended
	go g.watch(cmd, ours, ended)
	for group := range g.groups {
		if err := g.tell(group); err != nil {
			g.kill()
			return fmt.Errorf("no guard: %w", err)
		}
	}
	return nil
}

// watch waits for the end of a guard, and starts another one where programs are at work.
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
	g.log.Warn("the guard of the programs ended, and is started again", "end", cmd.ProcessState.String())
	if len(g.groups) == 0 || time.Since(g.since) < guardLives {
		return
	}
	if err := g.start(); err != nil {
		g.log.Error("until the next program is started, those at work would outlive the relay", "err", err)
	}
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
