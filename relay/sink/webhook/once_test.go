package webhook

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/outboxd/outboxd/relay"
)

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// TestOneRequestASend holds that one send is one request on the wire, though it has an Idempotency-Key, which net/http
// takes for a licence to repeat: the connection is an idle one that the server drops with the request unanswered.
func TestOneRequestASend(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]func(net.Conn){"closed": func(c net.Conn) { _ = c.Close() }, "reset": reset} {
		for kind, payload := range map[string][]byte{"with a body": []byte("x"), "empty": {}, "without a payload": nil} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				w := newWire(t, func(c net.Conn, nth int) {
					if nth == 2 {
						drop(c)
						return
					}
					reply(ok)(c, nth)
				})
				s := newSink(t, w.url(), nil)
				m := newMessage("a")
				m.Payload = payload
				if o := s.Send(t.Context(), m); o.Kind != relay.KindDone {
					t.Fatalf("%+v", o)
				}
				wantKind(t, s.Send(t.Context(), m), relay.KindUnknown, classReset)
				requests, bodies, conns := w.seen()
				if len(requests) != 2 || conns != 1 {
					t.Errorf("%d requests over %d connections, want 2 over 1", len(requests), conns)
				}
				if bodies[0] != string(payload) || bodies[1] != string(payload) {
					t.Errorf("bodies: %q", bodies)
				}
				if o := s.Send(t.Context(), m); o.Kind != relay.KindDone || w.count() != 3 {
					t.Errorf("%+v after %d requests", o, w.count())
				}
			})
		}
	}
}

// TestNothingIsFollowed counts the requests that a redirect causes.
func TestNothingIsFollowed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		var w *wire
		w = newWire(t, func(c net.Conn, _ int) {
			reply(fmt.Sprintf("HTTP/1.1 %d There\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", status, w.url()))(c, 0)
		})
		wantKind(t, newSink(t, w.url(), nil).Send(t.Context(), newMessage("a")), relay.KindRetry, class3xx)
		if w.count() != 1 {
			t.Errorf("status %d: %d requests", status, w.count())
		}
	}
}

// TestIdleConnectionClosed plays the race of a server that closes an idle connection while the next request is on its way:
// each send is at most one request, and what is called unsent never arrived.
func TestIdleConnectionClosed(t *testing.T) {
	t.Parallel()
	w := newWire(t, func(c net.Conn, nth int) {
		reply(ok)(c, nth)
		_ = c.Close()
	})
	s := newSink(t, w.url(), nil)
	came := map[string]int{}
	outcomes := map[string]relay.Outcome{}
	for i := range 300 {
		id := fmt.Sprint(i)
		outcomes[id] = s.Send(t.Context(), newMessage(id))
	}
	requests, _, _ := w.seen()
	for _, r := range requests {
		came[r.Header.Get(defaultKeyHeader)]++
	}
	for id, o := range outcomes {
		switch {
		case came[id] > 1, o.Kind == relay.KindUnsent && came[id] > 0, o.Kind == relay.KindDone && came[id] != 1:
			t.Errorf("message %s: %d requests, %+v", id, came[id], o)
		}
	}
}

// TestConnectionsAreKept holds that as many sends at once as the width do without a new connection each.
func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	const width, rounds = 4, 5
	var arrived sync.WaitGroup
	w := newWire(t, func(c net.Conn, nth int) {
		arrived.Done()
		arrived.Wait() // so that all connections are in use at once
		reply(ok)(c, nth)
	})
	s := newSink(t, w.url(), func(c *Config) { c.Width = width })
	for range rounds {
		arrived.Add(width)
		var sends sync.WaitGroup
		for i := range width {
			sends.Go(func() {
				if o := s.Send(t.Context(), newMessage(fmt.Sprint(i))); o.Kind != relay.KindDone {
					t.Errorf("%+v", o)
				}
			})
		}
		sends.Wait()
	}
	// A connection goes back a moment after its answer was read, so a round may open one in place of it.
	if requests, _, conns := w.seen(); conns > 2*width {
		t.Errorf("%d connections for %d requests", conns, len(requests))
	}
}

// TestBytes holds that a body arrives as it is stored, and that the answer is not decompressed.
func TestBytes(t *testing.T) {
	t.Parallel()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	w := newWire(t, reply("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08"))
	s := newSink(t, w.url(), nil)
	for _, payload := range []string{string(all), strings.Repeat("x", 16<<20), "x", ""} {
		m := newMessage("a")
		m.Payload = []byte(payload)
		if o := s.Send(t.Context(), m); o.Result != "\x1f\x8b\x08" {
			t.Errorf("%+v", o)
		}
		requests, bodies, _ := w.seen()
		if got := bodies[len(bodies)-1]; got != payload {
			t.Errorf("a body of %d bytes arrived as one of %d", len(payload), len(got))
		}
		if r := requests[len(requests)-1]; r.Header.Get("Accept-Encoding") != "" {
			t.Error("it asks for a compressed answer")
		}
	}
}
