package program

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/outboxd/outboxd/relay"
)

// TestMain also makes this test what the programs under test are: the guard, the one that waits at its gate, and helpers that
// no shell is good for.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case HoldCommand:
			fmt.Fprintln(os.Stderr, Hold(os.Args[2:]))
			os.Exit(1)
		case GuardCommand:
			Guard(os.Stdin)
			os.Exit(0)
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

// within is a context that ends so long before the test would fail.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// send sends one message, with a generous deadline.
func send(t testing.TB, s *Sink) relay.Outcome {
	t.Helper()
	return s.Send(within(t, generous), newMessage("a"))
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
