package webhook

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// TestNothingWentOut holds that a send of which nothing was written is unsent.
func TestNothingWentOut(t *testing.T) {
	t.Parallel()
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		w := newWire(t, reply(""))
		_ = w.listener.Close()
		wantKind(t, newSink(t, w.url(), nil).Send(t.Context(), newMessage("a")), relay.KindUnsent, classRefused, "connection refused")
	})
	t.Run("no such host", func(t *testing.T) {
		t.Parallel()
		s := newSink(t, "http://host.invalid/secret?token=secret", nil)
		o := s.Send(t.Context(), newMessage("a"))
		wantKind(t, o, relay.KindUnsent, classDNS, "host.invalid")
		if strings.Contains(o.Err, "secret") {
			t.Errorf("it shows the URL: %s", o.Err)
		}
	})
	t.Run("a certificate that nobody knows", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewUnstartedServer(nil)
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		server.StartTLS()
		t.Cleanup(server.Close)
		wantKind(t, newSink(t, server.URL, nil).Send(t.Context(), newMessage("a")), relay.KindUnsent, classTLS, "certificate")
	})
	t.Run("no TLS there", func(t *testing.T) {
		t.Parallel()
		to := serve(t, func(http.ResponseWriter, *http.Request) {})
		s := newSink(t, strings.Replace(to, "http:", "https:", 1), nil)
		wantKind(t, s.Send(t.Context(), newMessage("a")), relay.KindUnsent, classTLS)
	})
	t.Run("TLS that ends in the handshake", func(t *testing.T) {
		t.Parallel()
		l := listen(t, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1))
			reset(c)
		})
		wantKind(t, newSink(t, "https://"+l, nil).Send(t.Context(), newMessage("a")), relay.KindUnsent, classReset)
	})
	t.Run("TLS that never answers", func(t *testing.T) {
		t.Parallel()
		l := listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
		s := newSink(t, "https://"+l, func(c *Config) { c.Timeout = 50 * time.Millisecond })
		wantKind(t, s.Send(t.Context(), newMessage("a")), relay.KindUnsent, classTimeout)
	})
	t.Run("a connection that does not come in time", func(t *testing.T) {
		t.Parallel()
		s := newSink(t, "http://host.invalid", func(c *Config) { c.Timeout = 50 * time.Millisecond })
		s.transport.DialContext = counting(func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-t.Context().Done() // the end of the test, long after the send
			return nil, errNever
		})
		wantKind(t, s.Send(t.Context(), newMessage("a")), relay.KindUnsent, classTimeout)
	})
	t.Run("a context that is over", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w := newWire(t, reply(""))
		wantKind(t, newSink(t, w.url(), nil).Send(ctx, newMessage("a")), relay.KindUnsent, classTimeout)
		if w.count() != 0 {
			t.Error("it was sent")
		}
	})
	t.Run("a connection that takes no byte", func(t *testing.T) {
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
	})
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

// TestAnswerLost holds that a send of which something was written and that has no answer is unknown.
func TestAnswerLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script func(c net.Conn, nth int)
		class  string
	}{
		"reset":                      {func(c net.Conn, _ int) { reset(c) }, classReset},
		"end":                        {func(c net.Conn, _ int) { _ = c.Close() }, classReset},
		"half a head":                {func(c net.Conn, _ int) { reply("HTTP/1.1 200 OK\r\n")(c, 0); _ = c.Close() }, classReset},
		"silence":                    {reply(""), classTimeout},
		"endless informational ones": {reply("HTTP/1.1 103 Early Hints\r\n\r\n"), classTimeout},
		"no HTTP":                    {reply("220 canary ESMTP\r\n"), classOther},
		"too many headers":           {reply("HTTP/1.1 200 OK\r\nCanary: " + strings.Repeat("x", 2*maxHeaderBytes) + "\r\n\r\n"), classOther},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t, c.script)
			s := newSink(t, w.url(), func(cfg *Config) {
				if c.class == classTimeout {
					cfg.Timeout = 100 * time.Millisecond
				}
			})
			o := s.Send(t.Context(), newMessage("a"))
			wantKind(t, o, relay.KindUnknown, c.class)
			if strings.Contains(o.Err, "anary") {
				t.Errorf("it quotes the answer: %s", o.Err)
			}
			if w.count() != 1 {
				t.Errorf("%d requests", w.count())
			}
		})
	}
}

// TestStatusDecides holds that a status is an acknowledgement, whatever becomes of the body behind it.
func TestStatusDecides(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nstart"
	for name, script := range map[string]func(net.Conn, int){
		"cut body":     func(c net.Conn, _ int) { reply(head)(c, 0); _ = c.Close() },
		"endless body": reply(head + strings.Repeat("x", 2*maxAnswerBytes)),
		"slow body":    reply(head),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSink(t, newWire(t, script).url(), func(c *Config) {
				if name == "slow body" {
					c.Timeout = 100 * time.Millisecond
				}
			})
			if o := s.Send(t.Context(), newMessage("a")); o.Kind != relay.KindDone || !strings.HasPrefix(o.Result, "start") {
				t.Errorf("%.200v", o)
			}
		})
	}
}

// TestEarlierDeadline holds that the caller's deadline counts where it is the earlier one.
func TestEarlierDeadline(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	s := newSink(t, newWire(t, reply("")).url(), nil)
	wantKind(t, s.Send(ctx, newMessage("a")), relay.KindUnknown, classTimeout, "no answer in time")
}
