package webhook

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// TestConnectionThatTakesNothing holds that a send is unsent where its connection took no byte, though it took those of the
// message before.
func TestConnectionThatTakesNothing(t *testing.T) {
	t.Parallel()
	s := newSink(t, newWire(t, reply(ok)).url(), nil)
	var broken atomic.Bool
	s.transport.DialContext = counting(func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &breaking{c, &broken}, err
	})
	if o := s.Send(t.Context(), newMessage("a")); o.Kind != relay.KindDone {
		t.Fatalf("%+v", o)
	}
	broken.Store(true)
	for range 2 { // over the connection of the first message, then over one of its own
		wantKind(t, s.Send(t.Context(), newMessage("b")), relay.KindUnsent, classReset, "before anything was written")
	}
}

// breaking is a connection that takes nothing once it is broken.
type breaking struct {
	net.Conn
	broken *atomic.Bool
}

func (b *breaking) Write(p []byte) (int, error) {
	if b.broken.Load() {
		return 0, syscall.EPIPE
	}
	return b.Conn.Write(p)
}

// drip is a script that answers with the start of a text, and then with a byte now and then until nobody listens.
func drip(text string) func(net.Conn, int) {
	return func(c net.Conn, nth int) {
		reply(text)(c, nth)
		for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
			if _, err := c.Write([]byte("x")); err != nil {
				return
			}
		}
	}
}

// bomb is a body that would be 64 MiB if it were decompressed.
func bomb(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	w := gzip.NewWriter(&b)
	if _, err := w.Write(make([]byte, 64<<20)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestStatusDecides holds that a status is an acknowledgement, whatever becomes of the body behind it, and that no more of
// it is kept than the start.
func TestStatusDecides(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nstart"
	zipped := bomb(t)
	for name, c := range map[string]struct {
		script  func(net.Conn, int)
		timeout time.Duration
		starts  string
	}{
		"cut body":      {func(c net.Conn, _ int) { reply(head)(c, 0); _ = c.Close() }, generous, "start"},
		"reset body":    {func(c net.Conn, _ int) { reply(head+strings.Repeat("x", 8<<10))(c, 0); reset(c) }, generous, ""},
		"endless body":  {reply(head + strings.Repeat("x", 2*maxAnswerBytes)), generous, "start"},
		"silent body":   {reply(head), 100 * time.Millisecond, "start"},
		"dripping body": {drip(head), 100 * time.Millisecond, "startx"},
		"gzip bomb": {
			reply(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(zipped), zipped)), generous, zipped[:8],
		},
		"interim answers first": {reply("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" + ok), generous, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t, c.script)
			s := newSink(t, w.url(), func(cfg *Config) { cfg.Timeout = c.timeout })
			o := s.Send(t.Context(), newMessage("a"))
			if o.Kind != relay.KindDone || o.Status != http.StatusOK || !strings.HasPrefix(o.Result, c.starts) {
				t.Errorf("%.200v", o)
			}
			if len(o.Answer) > maxKeptBytes || len(o.Result) > maxResultBytes || w.count() != 1 {
				t.Errorf("%d bytes of result and %d of answer, after %d requests", len(o.Result), len(o.Answer), w.count())
			}
		})
	}
}

// TestSlowHeaders holds that a status line that does not come whole in time is no status.
func TestSlowHeaders(t *testing.T) {
	t.Parallel()
	w := newWire(t, drip("HTTP/1.1 200 OK\r\nX: "))
	s := newSink(t, w.url(), func(c *Config) { c.Timeout = 100 * time.Millisecond })
	wantKind(t, s.Send(t.Context(), newMessage("a")), relay.KindUnknown, classTimeout)
}

// TestSwitchingProtocols holds that a 101, behind which no body ends, is read no further: what follows is no answer.
func TestSwitchingProtocols(t *testing.T) {
	t.Parallel()
	w := newWire(t, func(c net.Conn, nth int) {
		reply("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nanother protocol")(c, nth)
		_ = c.Close()
	})
	o := newSink(t, w.url(), nil).Send(t.Context(), newMessage("a"))
	if wantKind(t, o, relay.KindRetry, classOther, "HTTP 101"); o.Answer != "" {
		t.Errorf("it kept %q", o.Answer)
	}
}

// TestLateAlert holds that an alert about our certificate says that nobody has read the request only where it answers the
// first one of a connection: on a later one the handshake is long over.
func TestLateAlert(t *testing.T) {
	t.Parallel()
	s := newSink(t, newWire(t, func(c net.Conn, nth int) {
		if nth == 1 {
			reply(ok)(c, nth)
		}
	}).url(), nil)
	var alerted atomic.Bool
	s.transport.DialContext = counting(func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &alerting{c, &alerted}, err
	})
	if o := s.Send(t.Context(), newMessage("a")); o.Kind != relay.KindDone {
		t.Fatalf("%+v", o)
	}
	alerted.Store(true)
	wantKind(t, s.Send(t.Context(), newMessage("b")), relay.KindUnknown, classTLS)
	wantKind(t, s.Send(t.Context(), newMessage("c")), relay.KindUnsent, classTLS, "it does not take our certificate")
}

// alerting is a connection that takes requests and answers them with the alert of a certificate that has expired.
type alerting struct {
	net.Conn
	alerted *atomic.Bool
}

func (a *alerting) Write(p []byte) (int, error) {
	n, err := a.Conn.Write(p)
	if a.alerted.Load() {
		err = errors.Join(err, a.SetReadDeadline(time.Now()))
	}
	return n, err
}

func (a *alerting) Read(p []byte) (int, error) {
	n, err := a.Conn.Read(p)
	if err != nil && a.alerted.Load() {
		return 0, &net.OpError{Op: "remote error", Err: tls.AlertError(45)}
	}
	return n, err
}

// TestEarlyAnswer holds that an answer counts that comes while the body is still on its way.
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	l := listen(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		reply("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")(c, 1)
		_, _ = io.Copy(io.Discard, c)
	})
	m := newMessage("a")
	m.Payload = make([]byte, 64<<20) // more than every buffer on the way holds
	wantKind(t, newSink(t, "http://"+l, nil).Send(t.Context(), m), relay.KindFail, classTooLarge)
}

// TestDeadline holds that the caller's deadline counts where there is one: a policy can be reloaded, a sink cannot.
func TestDeadline(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	s := newSink(t, newWire(t, reply("")).url(), nil)
	wantKind(t, s.Send(ctx, newMessage("a")), relay.KindUnknown, classTimeout, "no answer in time")

	ctx, cancel = context.WithTimeout(t.Context(), generous)
	defer cancel()
	late := serve(t, func(http.ResponseWriter, *http.Request) { <-time.After(200 * time.Millisecond) })
	s = newSink(t, late, func(c *Config) { c.Timeout = 20 * time.Millisecond })
	if o := s.Send(ctx, newMessage("a")); o.Kind != relay.KindDone {
		t.Errorf("%+v under a longer deadline", o)
	}
	wantKind(t, s.Send(t.Context(), newMessage("a")), relay.KindUnknown, classTimeout, "no answer in time")
}

// TestReadNoMore holds how much of an answer is read, and that a connection with more on it is not used again.
func TestReadNoMore(t *testing.T) {
	t.Parallel()
	body := &endless{}
	if got := read(&http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body)}, &secrets{}); len(got) != maxAnswerBytes || body.read > maxAnswerBytes {
		t.Errorf("%d bytes kept of %d", len(got), body.read)
	}
	w := newWire(t, reply("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat("x", 2*maxAnswerBytes)))
	s := newSink(t, w.url(), nil)
	for range 3 {
		if o := s.Send(t.Context(), newMessage("a")); o.Kind != relay.KindDone {
			t.Fatalf("%+v", o)
		}
	}
	if requests, _, conns := w.seen(); conns != 3 || len(requests) != 3 {
		t.Errorf("%d requests over %d connections", len(requests), conns)
	}
}

// endless is a body without end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return len(p), nil
}
