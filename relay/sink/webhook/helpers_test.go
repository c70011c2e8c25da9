package webhook

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/outboxd/outboxd/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// generous is how long a test waits for what should come at once.
const generous = 30 * time.Second

func newMessage(id string) *relay.Message {
	return &relay.Message{
		Claim:       relay.Claim{ID: id, RoutingKey: "orders", Type: "order_placed", SchemaVersion: 1},
		WireKey:     id,
		Payload:     []byte(`{"id":"` + id + `"}`),
		ContentType: "application/json",
	}
}

// newSink makes a Sink that posts to an address and is closed at the end of the test.
func newSink(t testing.TB, to string, change func(*Config)) *Sink {
	t.Helper()
	cfg := Config{URL: to, Timeout: generous}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// serve answers with a handler until the end of the test.
func serve(t testing.TB, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// wantKind fails the test unless the outcome is of that kind and class, in one line.
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
	if strings.ContainsAny(o.Err, "\n\r") {
		t.Errorf("err %q is more than a line", o.Err)
	}
}

// wire is a server below net/http: it takes connections and reads requests one by one, and a script says what becomes of
// each. It counts what came.
type wire struct {
	t        testing.TB
	listener net.Listener
	script   func(c net.Conn, nth int) // after the nth request was read; it may close c
	ended    sync.WaitGroup

	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
	conns    []net.Conn
}

func newWire(t testing.TB, script func(c net.Conn, nth int)) *wire {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, listener: listener, script: script}
	w.ended.Go(w.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		w.mu.Lock()
		for _, c := range w.conns {
			_ = c.Close()
		}
		w.mu.Unlock()
		w.ended.Wait()
	})
	return w
}

func (w *wire) url() string { return "http://" + w.listener.Addr().String() + "/in" }

func (w *wire) accept() {
	for {
		c, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		w.conns = append(w.conns, c)
		w.mu.Unlock()
		w.ended.Go(func() { w.read(c) })
	}
}

func (w *wire) read(c net.Conn) {
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		w.mu.Lock()
		w.requests, w.bodies = append(w.requests, req), append(w.bodies, string(body))
		nth := len(w.requests)
		w.mu.Unlock()
		w.script(c, nth)
	}
}

// seen are the requests that came so far, with their bodies, and over how many connections.
func (w *wire) seen() (requests []*http.Request, bodies []string, conns int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests), slices.Clone(w.bodies), len(w.conns)
}

func (w *wire) count() int {
	requests, _, _ := w.seen()
	return len(requests)
}

// reply is a script that answers every request with the same text.
func reply(text string) func(net.Conn, int) {
	return func(c net.Conn, _ int) { _, _ = io.WriteString(c, text) }
}

// reset closes a connection in the way of a crash.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// listen hands each connection to a function, and gives the address.
func listen(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			ended.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		ended.Wait()
	})
	return listener.Addr().String()
}

// errNever is what a test's dial ends in.
var errNever = errors.New("never")
