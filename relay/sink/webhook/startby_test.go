package webhook

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// TestStartBy holds that what may have taken effect goes out before its destination may forget it, or not at all: over a
// kept connection, a new one, and one that took too long to come.
func TestStartBy(t *testing.T) {
	t.Parallel()
	w := newWire(t, reply(ok))
	slow := func(s *Sink) {
		dial := s.transport.DialContext
		s.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			<-time.After(200 * time.Millisecond)
			return dial(ctx, network, address)
		}
	}
	for name, c := range map[string]struct {
		within  time.Duration // zero: no limit
		before  func(*Sink)
		payload string
		kind    relay.Kind
	}{
		"no limit":          {0, nil, "x", relay.KindDone},
		"in time":           {generous, nil, "x", relay.KindDone},
		"too late":          {-time.Second, nil, "x", relay.KindUnsent},
		"too late, empty":   {-time.Second, nil, "", relay.KindUnsent},
		"too late, large":   {-time.Second, nil, strings.Repeat("x", 1<<20), relay.KindUnsent},
		"slow connection":   {100 * time.Millisecond, slow, "x", relay.KindUnsent},
		"slow, and no hour": {0, slow, "x", relay.KindDone},
		"kept connection": {-time.Second, func(s *Sink) {
			if o := s.Send(t.Context(), newMessage("before")); o.Kind != relay.KindDone {
				t.Errorf("%+v", o)
			}
		}, "x", relay.KindUnsent},
	} {
		s := newSink(t, w.url(), nil)
		if c.before != nil {
			c.before(s)
		}
		before := w.count()
		m := newMessage("a")
		m.Payload = []byte(c.payload)
		if c.within != 0 {
			m.StartBy = time.Now().Add(c.within)
		}
		o := s.Send(t.Context(), m)
		if c.kind == relay.KindDone {
			if o.Kind != relay.KindDone {
				t.Errorf("%s: %+v", name, o)
			}
			continue
		}
		wantKind(t, o, relay.KindUnsent, classTimeout, "the destination may forget the key")
		if w.count() != before {
			t.Errorf("%s: it was sent", name)
		}
		m.StartBy = time.Time{}
		if o := s.Send(t.Context(), m); o.Kind != relay.KindDone {
			t.Errorf("%s: and the next send: %+v", name, o)
		}
	}
}

// TestStartByIsOfTheFirstByte holds that a request that began in time goes out whole, however long its body takes.
func TestStartByIsOfTheFirstByte(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	defer ours.Close()
	go io.Copy(io.Discard, theirs) //nolint:errcheck // ends with the connection
	p := &progress{startBy: time.Now().Add(generous)}
	c := &conn{Conn: ours}
	c.carries.Store(p)
	for range 2 {
		if n, err := c.Write([]byte("x")); n != 1 || err != nil || !p.wrote() || p.late() {
			t.Errorf("%d bytes, %v", n, err)
		}
		p.startBy = time.Now().Add(-generous)
	}
}

// TestFreshConnections holds that each send has a connection of its own where that is asked for.
func TestFreshConnections(t *testing.T) {
	t.Parallel()
	for fresh, want := range map[bool]int{true: 3, false: 1} {
		w := newWire(t, reply(ok))
		s := newSink(t, w.url(), func(c *Config) { c.FreshConnections = fresh })
		for range 3 {
			if o := s.Send(t.Context(), newMessage("a")); o.Kind != relay.KindDone {
				t.Fatalf("%+v", o)
			}
		}
		if requests, _, conns := w.seen(); conns != want || len(requests) != 3 {
			t.Errorf("fresh %t: %d requests over %d connections, want %d", fresh, len(requests), conns, want)
		}
	}
}
