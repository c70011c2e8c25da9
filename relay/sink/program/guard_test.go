//go:build linux

package program

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// relayCommand makes this test a relay that is killed: victim.
const relayCommand = "relay"

// victim executes programs that leave others behind, eight at once and again and again, until it is killed.
func victim() int {
	mark, found := os.LookupEnv("MARK")
	s, err := New(Config{
		Command: []string{"/bin/sh", "-c", "(sleep 600 & sleep 600) & trap '' TERM; echo; sleep 0.0$((OUTBOX_ATTEMPT % 10))"},
		Env:     map[string]string{"MARK": mark}, Self: "/proc/self/exe",
	}, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil || !found {
		return 1
	}
	for i := range 8 {
		go func() {
			for {
				m := newMessage("a")
				m.Attempts = rand.N(100) + i
				if o := s.Send(context.Background(), m); o.Kind == relay.KindDone {
					_, _ = io.WriteString(os.Stdout, "\n")
				}
			}
		}()
	}
	select {}
}

// TestKilledRelay: a relay is killed at random moments while programs begin, run and end. Nothing of their groups is left.
func TestKilledRelay(t *testing.T) {
	t.Parallel()
	rounds := 40
	if testing.Short() {
		rounds = 5
	}
	for range rounds {
		mark := newMark(t)
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", relayCommand)
		cmd.Env = []string{mark.text}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// A moment after a program ended, by which others are on their way: a few lines later, and then up to 20 ms.
		lines := bufio.NewScanner(out)
		for range rand.N(20) + 1 {
			lines.Scan()
		}
		<-time.After(rand.N(20 * time.Millisecond))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		mark.waitGone(t)
	}
}

// TestHeldPrograms: a relay that is killed between the start of a program and its word leaves nothing either, although no
// guard knows it.
func TestHeldPrograms(t *testing.T) {
	t.Parallel()
	mark := newMark(t)
	g, err := newGroups("/proc/self/exe", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer g.close(context.Background())
	cmd := &exec.Cmd{Path: "/bin/sleep", Args: []string{"sleep", "600"}, Env: []string{mark.text}}
	h, err := g.hold(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if args, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/cmdline"); err != nil || strings.HasPrefix(string(args), "sleep") {
		t.Errorf("it runs before its word: %q, %v", args, err)
	}
	_ = h.gate.Close() // as the kernel does where the relay dies
	eventually(t, "it ends", func() bool {
		select {
		case <-h.gone:
			return true
		default:
			return false
		}
	})
	h.finish()
	if got := h.cmd.ProcessState.ExitCode(); got != 1 {
		t.Errorf("exit code %d", got)
	}
}

// guardOf is the process that guards a sink.
func guardOf(t *testing.T, s *Sink) *os.Process {
	t.Helper()
	g := s.groups.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pipe == nil {
		return nil
	}
	return g.cmd.Process
}

// fill writes into the pipe of a guard that does not read, until no more goes in.
func fill(t *testing.T, g *guard) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.pipe.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.pipe.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
}

// TestGuardEnds: a guard that is killed, and one that is stopped, is followed by another one that knows what is at work.
func TestGuardEnds(t *testing.T) {
	t.Parallel()
	for name, hit := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := newMark(t)
			s := shell(t, mark.env, `[ "$OUTBOX_ID" = short ] || exec sleep 600`)
			outcome := make(chan relay.Outcome, 1)
			go func() { outcome <- s.Send(within(t, generous), newMessage("long")) }()
			eventually(t, "the program runs", func() bool { return len(marked(t, mark.text)) == 1 })
			first := guardOf(t, s)
			if err := first.Signal(hit); err != nil {
				t.Fatal(err)
			}
			if hit == syscall.SIGSTOP {
				fill(t, s.groups.guard)
			}
			eventually(t, "there is another guard", func() bool {
				wantKind(t, s.Send(within(t, generous), newMessage("short")), relay.KindDone, "")
				second := guardOf(t, s)
				return second != nil && second.Pid != first.Pid
			})
			if n := len(marked(t, mark.text)); n != 1 {
				t.Errorf("%d programs run, want the long one", n)
			}
			// The end of the pipe is what the guard sees of a relay that dies.
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
			wantKind(t, <-outcome, relay.KindUnknown, classProgram, "signal 9 (killed)")
			mark.waitGone(t)
		})
	}
}

// TestGuardIsAlone: the signals that end a relay do not reach its guard, and after the programs it has nothing to do.
func TestGuardIsAlone(t *testing.T) {
	t.Parallel()
	s := shell(t, nil, "exit 0")
	send(t, s)
	p := guardOf(t, s)
	const ignored = "4003" // SIGHUP, SIGINT and SIGTERM; what is above is the C library's own
	eventually(t, "the guard ignores signals", func() bool {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid) + "/status")
		_, line, _ := strings.Cut(string(status), "SigIgn:\t")
		mask, _, _ := strings.Cut(line, "\n")
		return err == nil && strings.HasSuffix(mask, ignored)
	})
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if err := p.Signal(sig); err != nil {
			t.Error(err)
		}
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	if fields := strings.Fields(rest); fields[2] != strconv.Itoa(p.Pid) || fields[3] != strconv.Itoa(p.Pid) {
		t.Errorf("it has no group and session of its own: %s", rest)
	}
	send(t, s)
	if again := guardOf(t, s); again.Pid != p.Pid {
		t.Errorf("guard %d is followed by %d", p.Pid, again.Pid)
	}
	if env, _ := os.ReadFile("/proc/" + strconv.Itoa(p.Pid) + "/environ"); len(env) > 0 {
		t.Errorf("it has an environment: %q", env)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	wantKind(t, send(t, s), relay.KindUnsent, classProgram, "closed")
}

// TestGuard holds what the guard kills: what it was told of and not told to forget.
func TestGuard(t *testing.T) {
	t.Parallel()
	mark := newMark(t)
	var groups []int
	for range 3 {
		cmd := exec.CommandContext(t.Context(), "/bin/sleep", "600")
		cmd.Env, cmd.SysProcAttr = []string{mark.text}, &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		groups = append(groups, cmd.Process.Pid)
		t.Cleanup(func() { _ = cmd.Wait() })
	}
	guard := exec.CommandContext(t.Context(), "/proc/self/exe", GuardCommand)
	guard.Stdin = strings.NewReader("+" + strconv.Itoa(groups[0]) + "\n+" + strconv.Itoa(groups[1]) + "\n\nx\n+1\n+0\n-1\n-" + strconv.Itoa(groups[0]) + "\n")
	if err := guard.Run(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one is killed", func() bool { return len(marked(t, mark.text)) == 2 })
	if left := marked(t, mark.text); slices.Contains(left, strconv.Itoa(groups[1])) {
		t.Errorf("%v are left of %v", left, groups)
	}
	for _, g := range groups {
		_ = syscall.Kill(-g, syscall.SIGKILL)
	}
}
