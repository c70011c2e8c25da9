//go:build linux

package program

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// TestNobodyIsLeft: what a program starts ends with it, and no send waits for what holds its output.
func TestNobodyIsLeft(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		kind   relay.Kind
		result string
	}{
		"a child that holds stdout":       {"sleep 600 & echo hi", relay.KindDone, "hi"},
		"a grandchild that holds stdout":  {"(sleep 600 & sleep 600) & echo hi", relay.KindDone, "hi"},
		"one that ignores SIGTERM":        {`sh -c 'trap "" TERM HUP; sleep 600' & echo hi`, relay.KindDone, "hi"},
		"a fork storm":                    {"for i in $(seq 50); do sleep 600 & done; echo hi", relay.KindDone, "hi"},
		"forks that go on":                {"while :; do sleep 0.01 & done & echo hi", relay.KindDone, "hi"},
		"a stopped one":                   {"sleep 600 & kill -STOP $!; echo hi", relay.KindDone, "hi"},
		"one that kills its own group":    {"sleep 600 & echo hi; kill -9 0", relay.KindUnknown, ""},
		"one that failed":                 {"sleep 600 & exit 3", relay.KindRetry, ""},
		"under timeout(1)":                {beside("timeout 600", "sleep 600 & sleep 600") + "echo hi", relay.KindDone, "hi"},
		"under timeout(1), deaf":          {beside("timeout 600", `trap "" TERM; sleep 600; sleep 600`) + "echo hi", relay.KindDone, "hi"},
		"under job control":               {`bash -c "set -m; for i in {1..20}; do sleep 600 & done; echo hi"`, relay.KindDone, "hi"},
		"forks under job control":         {`bash -c "set -m; (while :; do sleep 0.01 & done) & echo hi"`, relay.KindDone, "hi"},
		"a shell that waits for children": {`sleep 600 & trap 'kill $!' TERM; echo hi; exit 0`, relay.KindDone, "hi"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := newMark(t)
			o := send(t, shell(t, mark.env, c.script))
			if o.Kind != c.kind || o.Result != c.result {
				t.Errorf("%+v", o)
			}
			mark.waitGone(t)
		})
	}
}

// TestOutsideTheSession: a process that left the session is nobody's, and keeps no send waiting.
func TestOutsideTheSession(t *testing.T) {
	t.Parallel()
	mark := newMark(t)
	o := send(t, shell(t, mark.env, outside("exec sleep 600")+"echo hi"))
	if o.Kind != relay.KindDone || o.Result != "hi" {
		t.Errorf("%+v", o)
	}
	if len(marked(t, mark.text)) == 0 {
		t.Error("it was killed, or did not leave the session")
	}
}

// TestTimeOut: at its time-out a program gets SIGTERM, and SIGKILL when the deadline is over. No exit code counts then.
func TestTimeOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		kind   relay.Kind
		result string
		words  string
	}{
		"ends by SIGTERM":              {"echo began; exec sleep 600", relay.KindUnknown, "", "no end in time, ended by signal 15 (terminated)"},
		"ignores SIGTERM":              {"trap '' TERM; echo began; sleep 600 & sleep 600", relay.KindUnknown, "", "no end in time, ended by signal 9 (killed)"},
		"ends with code 0":             {"trap 'echo done; exit 0' TERM; sleep 600 & wait", relay.KindUnknown, "", "no end in time, exit code 0"},
		"ends with a code":             {"trap 'exit 3' TERM; sleep 600 & wait", relay.KindUnknown, "", "no end in time, exit code 3"},
		"says no":                      {"trap 'exit 65' TERM; sleep 600 & wait", relay.KindUnknown, "", "no end in time, exit code 65"},
		"its child holds stdout on":    {"trap 'exit 3' TERM; sh -c 'trap \"\" TERM; sleep 600' & wait", relay.KindUnknown, "", "exit code 3"},
		"is under timeout(1)":          {"timeout 600 sleep 600", relay.KindUnknown, "", "signal 15"},
		"waits for job control":        {`exec bash -c "trap : TERM; set -m; sh -c 'trap \"exit 4\" TERM; sleep 600 & wait' & wait; wait; exit 3"`, relay.KindUnknown, "", "exit code 3"},
		"waits for timeout(1)":         {"trap '' TERM; timeout 600 sh -c 'trap \"exit 5\" TERM; sleep 600 & wait'; exit 3", relay.KindUnknown, "", ""},
		"its child outside holds it":   {outside("exec sleep 600") + "exec sleep 600", relay.KindUnknown, "", "signal 15"},
		"is stopped":                   {"kill -STOP $$", relay.KindUnknown, "", "signal 9"},
		"forks on while it is to end":  {"trap '' TERM; while :; do sleep 0.01 & done", relay.KindUnknown, "", "signal 9"},
		"writes on while it is to end": {"trap '' TERM; while :; do echo 0123456789; done", relay.KindUnknown, "", "signal 9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := newMark(t)
			s := shell(t, func(cfg *Config) { mark.env(cfg); cfg.Grace = time.Second }, c.script)
			o := s.Send(within(t, 2*time.Second), newMessage("a"))
			if o.Kind != c.kind || o.Result != c.result || !strings.Contains(o.Err, c.words) {
				t.Errorf("%+v", o)
			}
			if o.Kind == relay.KindUnknown && o.Class != classTimeout {
				t.Errorf("class %q", o.Class)
			}
			if !strings.Contains(c.script, "setsid") {
				mark.waitGone(t)
			}
		})
	}
}

// TestCutOff: where the relay gives a send up, SIGTERM comes at once, and SIGKILL soon after it.
func TestCutOff(t *testing.T) {
	t.Parallel()
	mark := newMark(t)
	began := filepath.Join(t.TempDir(), "began")
	s := shell(t, mark.env, "trap '' TERM; echo >"+began+"; sleep 600 & sleep 600")
	ctx, cutOff := context.WithCancel(t.Context())
	defer cutOff()
	outcome := make(chan relay.Outcome, 1)
	go func() { outcome <- s.Send(ctx, newMessage("a")) }()
	eventually(t, "the program began", func() bool { _, err := os.Stat(began); return err == nil })
	cutOff()
	wantKind(t, <-outcome, relay.KindUnknown, classTimeout, "cut off by a stop or the end of its lease, ended by signal 9 (killed)")
	mark.waitGone(t)
	wantKind(t, s.Send(ctx, newMessage("a")), relay.KindUnsent, classTimeout, "not started")
}

// TestGibibyte: a program that writes without end costs no memory, and is not kept waiting.
func TestGibibyte(t *testing.T) {
	t.Parallel()
	const gibibyte = 1 << 30
	s := shell(t, nil, "echo first; head -c 1073741824 /dev/zero; head -c 1073741824 /dev/zero >&2; exit 3")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	o := send(t, s)
	runtime.ReadMemStats(&after)
	wantKind(t, o, relay.KindRetry, classProgram)
	if len(o.Answer) > maxAnswerBytes || !strings.HasPrefix(o.Answer, "first\n") || len(o.Err) > maxErrorBytes {
		t.Errorf("%d bytes of answer, %d of error", len(o.Answer), len(o.Err))
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > gibibyte/2 {
		t.Errorf("%d bytes were allocated meanwhile, by all tests", grown)
	}
}

// TestNoZombies: no program is left unreaped. It runs alone, so that all zombies are its own.
func TestNoZombies(t *testing.T) {
	s := shell(t, nil, "for i in $(seq 20); do (sleep 600 & sleep 600) & done; sh -c 'exit 0' & exit 0")
	for range 5 {
		wantKind(t, send(t, s), relay.KindDone, "")
	}
	for _, pid := range zombies(t) {
		t.Errorf("process %s is not reaped", pid)
	}
}

// leader starts a process as the leader of a session, with what the relay knows of it.
func leader(t *testing.T, script string) (p *process, gone chan struct{}) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gone = make(chan struct{})
	return &process{cmd: cmd, gone: gone, ended: func() {}}, gone
}

// TestDoesNotEnd: no send waits for a program that SIGKILL does not end, as one of another user by its set-user-ID bit. It is
// reaped once it ends.
func TestDoesNotEnd(t *testing.T) {
	t.Parallel()
	p, gone := leader(t, "exec sleep 600") // gone is not closed when it has ended: so it looks
	forgotten := make(chan struct{})
	p.ended = func() { close(forgotten) }
	over, cancel := context.WithCancel(t.Context())
	cancel()
	ends := make(chan end, 1)
	go func() { ends <- p.wait(over, time.Millisecond, time.Millisecond) }()
	var e end
	select {
	case e = <-ends:
	case <-time.After(generous):
		close(gone)
		t.Fatal("it is waited for")
	}
	wantKind(t, Config{}.of(e), relay.KindUnknown, classTimeout, "it does not end by SIGKILL: it runs as a user whose")
	select {
	case <-forgotten:
		t.Error("its session is forgotten while it is there")
	default:
	}
	close(gone)
	<-forgotten
	eventually(t, "it is reaped", func() bool { return syscall.Kill(p.session(), 0) == syscall.ESRCH })
}

// TestEndedBefore: of a program that ended while its relay was frozen the exit code counts, although its time is over as well.
func TestEndedBefore(t *testing.T) {
	t.Parallel()
	for range 20 {
		p, gone := leader(t, "exit 0")
		waitExit(p.session())
		close(gone)
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		e := p.wait(ctx, time.Second, time.Second)
		cancel()
		wantKind(t, Config{}.of(e), relay.KindDone, "")
	}
}

// TestSignalOnce: each group beside the leader's gets a signal once, however many processes are in it. One that queues shows
// how often it came.
func TestSignalOnce(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 to count signals by")
	}
	const queues = 40
	dir := t.TempDir()
	const count = `
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {40})
os.setpgid(0, 0)
if os.fork() and os.fork() and os.fork():
    open("ready", "w")
    n = 0
    while signal.sigtimedwait({40}, 1 if n else 60):
        n += 1
    open("count", "w").write(str(n))
    os.rename("count", "counted")
else:
    signal.pause()
`
	p, gone := leader(t, "cd "+dir+"; python3 -c '"+count+"' & sleep 600")
	defer func() {
		close(gone)
		endSession(p.session(), time.Now().Add(generous))
		_ = syscall.Kill(-p.session(), syscall.SIGKILL)
		p.reap()
	}()
	there := func(name string) func() bool {
		return func() bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
	}
	eventually(t, "it is ready", there("ready"))
	signalSession(p.session(), queues)
	eventually(t, "it has counted", there("counted"))
	if got, _ := os.ReadFile(filepath.Join(dir, "counted")); string(got) != "1" {
		t.Errorf("it came %s times", got)
	}
}

// TestForgottenFirst: the guard hears of the end of a session while its number is nobody else's.
func TestForgottenFirst(t *testing.T) {
	t.Parallel()
	p, gone := leader(t, "exit 0")
	go func() {
		defer close(gone)
		waitExit(p.session())
	}()
	p.ended = func() {
		if err := syscall.Kill(p.session(), 0); err != nil {
			t.Error("it was reaped before", err)
		}
	}
	if !p.finish() {
		t.Error("it did not end")
	}
}

// TestWarnFirst holds that the first process of a container, which is the parent of all that lost its own, is warned of it.
func TestWarnFirst(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	warnFirst(2, slog.New(slog.NewTextHandler(&log, nil)))
	if log.Len() > 0 {
		t.Error(log.String())
	}
	warnFirst(1, slog.New(slog.NewTextHandler(&log, nil)))
	if !strings.Contains(log.String(), "docker run --init") {
		t.Error(log.String())
	}
}
