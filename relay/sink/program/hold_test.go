//go:build linux

package program

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// TestHeldPrograms: a relay that is killed between the start of a program and its word leaves nothing either, although no
// guard knows it.
func TestHeldPrograms(t *testing.T) {
	t.Parallel()
	mark := newMark(t)
	g, err := newSessions("/proc/self/exe", slog.New(slog.DiscardHandler))
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

// TestNeverBegan: a program that ends before it was executed has done nothing, whatever ended it.
func TestNeverBegan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hit   func(h *held, cutOff func())
		class string
		words string
	}{
		"killed":  {func(h *held, _ func()) { _ = syscall.Kill(h.session(), syscall.SIGKILL) }, classProgram, "it ended before it was executed, ended by signal 9"},
		"cut off": {func(_ *held, cutOff func()) { cutOff() }, classTimeout, "it ended before it was executed, ended by signal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := newSessions("/proc/self/exe", slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer all.close(context.Background())
			h, err := all.hold(&exec.Cmd{Path: "/bin/sleep", Args: []string{"sleep", "600"}})
			if err != nil {
				t.Fatal(err)
			}
			// What is stopped does not take its word.
			if err := syscall.Kill(h.session(), syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it is stopped", func() bool { return stateOf(t, h.session()) == "T" })
			p, err := h.release()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c.hit(h, cancel)
			wantKind(t, Config{}.of(p.wait(ctx, time.Second, time.Millisecond)), relay.KindUnsent, c.class, c.words)
		})
	}
}

// stateOf is a letter of proc_pid_stat(5); empty where there is no such process.
func stateOf(t *testing.T, pid int) string {
	t.Helper()
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(stat), ") ")
	state, _, _ := strings.Cut(rest, " ")
	return state
}

// TestHoldByHand: without the pipes of a relay it does nothing.
func TestHoldByHand(t *testing.T) {
	t.Parallel()
	file, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	pipe, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer writer.Close()
	for name, c := range map[string]struct {
		args  []string
		files []*os.File
	}{
		"no files":   {[]string{"/bin/echo", "echo", "began"}, nil},
		"one file":   {[]string{"/bin/echo", "echo", "began"}, []*os.File{pipe}},
		"no pipes":   {[]string{"/bin/echo", "echo", "began"}, []*os.File{file, file}},
		"no report":  {[]string{"/bin/echo", "echo", "began"}, []*os.File{pipe, file}},
		"no program": {nil, []*os.File{pipe, writer}},
	} {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", append([]string{HoldCommand}, c.args...)...)
		cmd.ExtraFiles = c.files
		out, err := cmd.CombinedOutput()
		if err == nil || strings.TrimSpace(string(out)) != "a relay starts this by itself; there is nothing to do with it by hand" {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
}

// TestNohup: what is ignored where the relay was started ends its programs as usual.
func TestNohup(t *testing.T) {
	t.Parallel()
	gate, word, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	report, reporter, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer report.Close()
	_, _ = word.WriteString("\n")
	_ = word.Close()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c",
		`trap "" HUP INT; exec /proc/self/exe "$@"`, "sh", HoldCommand, "/bin/grep", "grep", "SigIgn", "/proc/self/status")
	cmd.Args[2] = strings.ReplaceAll(cmd.Args[2], "/proc/self/exe", "/proc/"+strconv.Itoa(os.Getpid())+"/exe") // not the shell's
	cmd.ExtraFiles, cmd.Stdout = []*os.File{gate, reporter}, &out
	err = cmd.Run()
	_, _ = gate.Close(), reporter.Close()
	var ignored uint64
	if _, scan := fmt.Sscanf(out.String(), "SigIgn:\t%x", &ignored); err != nil || scan != nil || ignored&0x3 != 0 {
		t.Errorf("%v, %v, %s", err, scan, out.String())
	}
}
