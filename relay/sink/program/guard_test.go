//go:build linux

package program

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
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
		Command: []string{"/bin/sh", "-c", "(sleep 600 & sleep 600) & timeout 600 sleep 600 & trap '' TERM; echo; sleep 0.0$((OUTBOX_ATTEMPT % 10))"},
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

// TestKilledRelay: a relay is killed at random moments while programs begin, run and end. Nothing of their sessions is left.
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

// guardOf is the process that guards a sink.
func guardOf(t *testing.T, s *Sink) *os.Process {
	t.Helper()
	g := s.sessions.guard
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

// deafen stops the guard of a sink, and fills its pipe.
func deafen(t *testing.T, s *Sink) {
	t.Helper()
	p := guardOf(t, s)
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the guard is stopped", func() bool { return stateOf(t, p.Pid) == "T" })
	fill(t, s.sessions.guard)
}

// TestGuardEnds: a guard that is killed, and one that is stopped, is followed by another one that knows what is at work,
// whether or not another program begins or ends meanwhile.
func TestGuardEnds(t *testing.T) {
	t.Parallel()
	for name, hit := range map[string]func(t *testing.T, s *Sink, end func()){
		"killed": func(t *testing.T, s *Sink, _ func()) {
			if err := guardOf(t, s).Kill(); err != nil {
				t.Fatal(err)
			}
		},
		"killed, and none can be started": func(t *testing.T, s *Sink, _ func()) {
			g := s.sessions.guard
			g.mu.Lock()
			self := g.self
			g.self = "/none"
			began := g.since
			g.mu.Unlock()
			if err := guardOf(t, s).Kill(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "a start was tried", func() bool {
				g.mu.Lock()
				defer g.mu.Unlock()
				return g.since != began
			})
			g.mu.Lock()
			g.self = self
			g.mu.Unlock()
		},
		"stopped when a program begins": func(t *testing.T, s *Sink, _ func()) {
			deafen(t, s)
			wantKind(t, s.Send(within(t, generous), newMessage("short")), relay.KindDone, "")
		},
		"stopped when a program ends": func(t *testing.T, s *Sink, end func()) {
			deafen(t, s)
			end()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark, ends := newMark(t), filepath.Join(t.TempDir(), "ends")
			s := shell(t, mark.env, `case $OUTBOX_ID in
				long) exec sleep 600 ;;
				ends) while ! [ -e `+ends+` ]; do sleep 0.01; done ;;
			esac`)
			outcome, ended := make(chan relay.Outcome, 1), make(chan relay.Outcome, 1)
			go func() { outcome <- s.Send(within(t, generous), newMessage("long")) }()
			go func() { ended <- s.Send(within(t, generous), newMessage("ends")) }()
			eventually(t, "both programs run", func() bool { return len(sessionsOf(s)) == 2 })
			first := guardOf(t, s)
			end := func() {
				if err := os.WriteFile(ends, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				wantKind(t, <-ended, relay.KindDone, "")
			}
			hit(t, s, end)
			eventually(t, "there is another guard", func() bool {
				second := guardOf(t, s)
				return second != nil && second.Pid != first.Pid
			})
			if name != "stopped when a program ends" {
				end()
			}
			left := sessionsOf(s)
			if len(left) != 1 || stateOf(t, left[0]) == "" {
				t.Fatalf("%v are at work, want the long one", left)
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

// sessionsOf are those that the guard of a sink is told of.
func sessionsOf(s *Sink) []int {
	g := s.sessions.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Keys(g.sessions))
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

// TestGuard holds what the guard kills: what it was told of and not told to forget, all groups of it.
func TestGuard(t *testing.T) {
	t.Parallel()
	mark := newMark(t)
	var sessions []string
	for range 3 {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "timeout 600 sleep 600 & exec sleep 600")
		cmd.Env, cmd.SysProcAttr = []string{mark.text}, &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, strconv.Itoa(cmd.Process.Pid))
		t.Cleanup(func() { _ = cmd.Wait() })
	}
	eventually(t, "all run", func() bool { return len(marked(t, mark.text)) == 9 })
	third, err := strconv.Atoi(sessions[2])
	if err != nil {
		t.Fatal(err)
	}
	tooLong := strconv.FormatInt(int64(third)+1<<32, 10)
	guard := exec.CommandContext(t.Context(), "/proc/self/exe", GuardCommand)
	guard.Stdin = strings.NewReader("+" + sessions[0] + "\n+" + sessions[1] + "\n+" + tooLong + "\n\nx\n+1\n+0\n-1\n-" + sessions[0] + "\n")
	if err := guard.Run(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one is killed", func() bool { return len(marked(t, mark.text)) == 6 })
	if left := marked(t, mark.text); slices.Contains(left, sessions[1]) {
		t.Errorf("%v are left of %v", left, sessions)
	}
	for _, pid := range marked(t, mark.text) {
		if n, err := strconv.Atoi(pid); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
}
