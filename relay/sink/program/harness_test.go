//go:build linux

package program

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/outboxd/outboxd/relay"
)

// TestMain also makes of this test what a relay starts of itself, and the relays that are killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case HoldCommand:
			fmt.Fprintln(os.Stderr, Hold(os.Args[2:]))
			os.Exit(1)
		case GuardCommand:
			Guard(os.Stdin)
			os.Exit(0)
		case relayCommand:
			os.Exit(victim())
		}
	}
	goleak.VerifyTestMain(m)
}

// generous is how long a test waits for what should come at once.
const generous = time.Minute

func newMessage(id string) *relay.Message {
	return &relay.Message{
		Claim:       relay.Claim{ID: id, RoutingKey: "orders", Type: "charge_order", SchemaVersion: 1},
		WireKey:     id,
		Payload:     []byte(`{"id":"` + id + `"}`),
		ContentType: "application/json",
	}
}

// newSink makes a Sink that executes a command and is closed at the end of the test.
func newSink(t testing.TB, change func(*Config), command ...string) *Sink {
	t.Helper()
	cfg := Config{Command: command, Self: "/proc/self/exe"}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// shell makes a Sink whose program is a script.
func shell(t testing.TB, change func(*Config), script string) *Sink {
	t.Helper()
	return newSink(t, change, "/bin/sh", "-c", script)
}

// beside is the part of a script that starts another one by a program such as timeout, and waits until that runs.
func beside(by, script string) string {
	return "f=$(mktemp); " + by + " sh -c 'rm '$f'; " + script + "' & while [ -e $f ]; do sleep 0.01; done; "
}

// outside is the part of a script that starts another one outside the session, and waits until it is there.
func outside(script string) string { return beside("setsid", script) }

// within is a context that ends so long before the test would fail.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// send sends one message, with a generous deadline that Send has to keep.
func send(t testing.TB, s *Sink) relay.Outcome {
	t.Helper()
	ctx, outcome := within(t, generous), make(chan relay.Outcome, 1)
	go func() { outcome <- s.Send(ctx, newMessage("a")) }()
	select {
	case o := <-outcome:
		return o
	case <-time.After(2 * generous):
		t.Fatal("Send does not return")
		return relay.Outcome{}
	}
}

// wantKind fails the test unless the outcome is of that kind and class, with these words in its error.
func wantKind(t testing.TB, o relay.Outcome, kind relay.Kind, class string, words ...string) {
	t.Helper()
	if o.Kind != kind || o.Class != class {
		t.Fatalf("outcome is %+v, want %s %s", o, kind, class)
	}
	for _, w := range words {
		if !strings.Contains(o.Err, w) {
			t.Errorf("err %q does not say %q", o.Err, w)
		}
	}
}

// marked lists the processes that have a text in their environment or their arguments, but for this one.
func marked(t testing.TB, mark string) (pids []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range files {
		env, _ := os.ReadFile(dir + "/environ") // it may have ended meanwhile
		args, _ := os.ReadFile(dir + "/cmdline")
		if strings.Contains(string(slices.Concat(env, args)), mark) && filepath.Base(dir) != fmt.Sprint(os.Getpid()) {
			pids = append(pids, filepath.Base(dir))
		}
	}
	return pids
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for late := time.After(generous); !holds(); {
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("not within %s: %s", generous, what)
		}
	}
}

// zombies are our children that have ended and were not reaped.
func zombies(t testing.TB) (pids []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, _ := os.ReadFile(file) // it may have ended meanwhile
		_, rest, _ := strings.Cut(string(text), ") ")
		if strings.HasPrefix(rest, fmt.Sprintf("Z %d ", os.Getpid())) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

// mark is a variable that all processes of a test have, so that they are found in /proc.
type mark struct{ text string }

// newMark makes one, and kills what has it at the end of the test, as processes that left their session.
func newMark(t testing.TB) mark {
	t.Helper()
	m := mark{"MARK=" + rand.Text()}
	t.Cleanup(func() {
		for _, pid := range marked(t, m.text) {
			if n, err := strconv.Atoi(pid); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
	})
	return m
}

func (m mark) env(c *Config) { c.Env = map[string]string{"MARK": strings.TrimPrefix(m.text, "MARK=")} }

// waitGone waits until no process has the mark.
func (m mark) waitGone(t testing.TB) {
	t.Helper()
	eventually(t, "no process has "+m.text, func() bool { return len(marked(t, m.text)) == 0 })
}
