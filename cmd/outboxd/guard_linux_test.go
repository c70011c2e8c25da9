package main

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	programsink "github.com/outboxd/outboxd/relay/sink/program"
)

// TestSignalsOfHeldPrograms holds that a signal which ends programs ends what is about to become one, too: the relay's own
// ways to stop are not in force there.
func TestSignalsOfHeldPrograms(t *testing.T) {
	t.Parallel()
	gate, word, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	report, reporter, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _, _, _ = gate.Close(), word.Close(), report.Close(), reporter.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], programsink.HoldCommand, "/bin/true", "true")
	cmd.Env, cmd.ExtraFiles = []string{asMain + "=1"}, []*os.File{gate, reporter}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "waiting at its gate", func() bool {
		info, _ := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/fdinfo/3")
		_, rest, _ := strings.Cut(string(info), "flags:")
		flags, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
		n, err := strconv.ParseUint(flags, 8, 64)
		return err == nil && n&syscall.O_CLOEXEC != 0 // the first thing that it does
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // how it ended is read below
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %s", cmd.ProcessState)
	}
}

// TestOwnCommandsAreHidden holds that nobody who types them gets anything but words.
func TestOwnCommandsAreHidden(t *testing.T) {
	t.Parallel()
	if code, _, stderr := cli(t, environment(), programsink.HoldCommand); code != exitUsage || !strings.Contains(stderr, "unknown command") {
		t.Errorf("%d %s", code, stderr)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], programsink.HoldCommand)
	cmd.Env = []string{asMain + "=1"}
	out, err := cmd.CombinedOutput()
	if err == nil || string(out) != "outboxd: a relay starts this by itself; there is nothing to do with it by hand\n" {
		t.Errorf("%v, %s", err, out)
	}
}
