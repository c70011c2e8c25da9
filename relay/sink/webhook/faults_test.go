package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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

// fault is a send that has no answer, or not all of it, as docs/outcomes.md tells of it.
type fault struct {
	what  string
	kind  relay.Kind
	class string
	says  string // what its words must have in them
	send  func(t *testing.T) (o relay.Outcome, requests int)
}

// canary is in what receivers say, and never in words.
const canary = "canary"

func faults() []fault {
	const short = 100 * time.Millisecond
	quick := func(c *Config) { c.Timeout = short }
	return []fault{
		{"The name has no address", relay.KindUnsent, classDNS, "host.invalid", func(t *testing.T) (relay.Outcome, int) {
			return sendTo(t, "http://host.invalid/canary?token=canary", nil), 0
		}},
		{"The connection is refused", relay.KindUnsent, classRefused, "connection refused", func(t *testing.T) (relay.Outcome, int) {
			w := newWire(t, reply(""))
			_ = w.listener.Close()
			return sendTo(t, w.url(), nil), w.count()
		}},
		{"`public_only` refuses the address", relay.KindUnsent, classRefused, "public_only refuses 127.0.0.1, which is loopback", func(t *testing.T) (relay.Outcome, int) {
			w := newWire(t, reply(ok))
			return newPublicSink(t, w.url()).Send(t.Context(), newMessage("a")), w.count()
		}},
		{"No connection in time", relay.KindUnsent, classTimeout, "no connection in time", func(t *testing.T) (relay.Outcome, int) {
			s := newSink(t, "http://host.invalid", quick)
			s.transport.DialContext = counting(func(context.Context, string, string) (net.Conn, error) {
				<-t.Context().Done() // the end of the test, long after the send
				return nil, errNever
			})
			return s.Send(t.Context(), newMessage("a")), 0
		}},
		{"No TLS handshake within `connect_timeout`", relay.KindUnsent, classTimeout, "TLS handshake", func(t *testing.T) (relay.Outcome, int) {
			l := listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
			return sendTo(t, "https://"+l, func(c *Config) { c.ConnectTimeout = short }), 0
		}},
		{"The TLS handshake is cut", relay.KindUnsent, classReset, "TLS handshake", func(t *testing.T) (relay.Outcome, int) {
			l := listen(t, func(c net.Conn) {
				_, _ = c.Read(make([]byte, 1))
				reset(c)
			})
			return sendTo(t, "https://"+l, nil), 0
		}},
		{"It speaks no TLS", relay.KindUnsent, classTLS, "TLS handshake", func(t *testing.T) (relay.Outcome, int) {
			to := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request came") })
			return sendTo(t, strings.Replace(to, "http:", "https:", 1), nil), 0
		}},
		{"It speaks only TLS before 1.2", relay.KindUnsent, classTLS, "TLS handshake", func(t *testing.T) (relay.Outcome, int) {
			return sendTLS(t, "127.0.0.1", time.Hour, &tls.Config{MaxVersion: tls.VersionTLS11}, true)
		}},
		{"Its certificate is of an unknown authority", relay.KindUnsent, classTLS, "unknown authority", func(t *testing.T) (relay.Outcome, int) {
			return sendTLS(t, "127.0.0.1", time.Hour, &tls.Config{}, false)
		}},
		{"Its certificate is of another name", relay.KindUnsent, classTLS, "cannot validate certificate", func(t *testing.T) (relay.Outcome, int) {
			return sendTLS(t, "other.internal", time.Hour, &tls.Config{}, true)
		}},
		{"Its certificate has expired", relay.KindUnsent, classTLS, "expired", func(t *testing.T) (relay.Outcome, int) {
			return sendTLS(t, "127.0.0.1", -time.Minute, &tls.Config{}, true)
		}},
		{"It wants a certificate of ours, and there is none that it takes", relay.KindUnsent, classTLS, "does not take our certificate", func(t *testing.T) (relay.Outcome, int) {
			return sendTLS(t, "127.0.0.1", time.Hour, &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool()}, true)
		}},
		{"A secret cannot be read", relay.KindUnsent, classAuth, "webhook.bearer: cannot read ./token", func(t *testing.T) (relay.Outcome, int) {
			w := newWire(t, reply(ok))
			var gone atomic.Bool
			s := newSink(t, w.url(), func(c *Config) {
				c.Bearer = func() (string, error) {
					if gone.Load() {
						return "", errors.New("cannot read ./token: no such file or directory")
					}
					return canary, nil
				}
			})
			gone.Store(true)
			return s.Send(t.Context(), newMessage("a")), w.count()
		}},
		{"No token: the token server answers 4xx", relay.KindUnsent, classAuth, "no token: the token server answered HTTP 401, invalid_client", func(t *testing.T) (relay.Outcome, int) {
			const body = `{"error":"invalid_client","error_description":"` + canary + `"}`
			return sendByToken(t, reply(fmt.Sprintf("HTTP/1.1 401 No\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)))
		}},
		{"No token: the token server answers 5xx", relay.KindUnsent, class5xx, "no token: the token server answered HTTP 503", func(t *testing.T) (relay.Outcome, int) {
			return sendByToken(t, reply("HTTP/1.1 503 Canary\r\nContent-Length: 6\r\n\r\n"+canary))
		}},
		{"No token: the token server cannot be reached", relay.KindUnsent, classReset, "no token", func(t *testing.T) (relay.Outcome, int) {
			return sendByToken(t, func(c net.Conn, _ int) { reset(c) })
		}},
		{"The connection ends before anything was written", relay.KindUnsent, classReset, "before anything was written", func(t *testing.T) (relay.Outcome, int) {
			w := newWire(t, reply(ok))
			s := newSink(t, w.url(), nil)
			s.transport.DialContext = counting(func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := (&net.Dialer{}).DialContext(ctx, network, address)
				return mute{c}, err
			})
			return s.Send(t.Context(), newMessage("a")), w.count()
		}},
		{"The time is over before anything was written", relay.KindUnsent, classTimeout, "no connection in time", func(t *testing.T) (relay.Outcome, int) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			w := newWire(t, reply(ok))
			return newSink(t, w.url(), nil).Send(ctx, newMessage("a")), w.count()
		}},
		{"It may have taken effect before, and the dedupe window ends before the first byte", relay.KindUnsent, classTimeout, "the destination may forget the key", func(t *testing.T) (relay.Outcome, int) {
			w := newWire(t, reply(ok))
			m := newMessage("a")
			m.StartBy = time.Now()
			return newSink(t, w.url(), nil).Send(t.Context(), m), w.count()
		}},
		{"Its type, content type or a header cannot be carried by HTTP", relay.KindFail, classInvalid, "header X has a control character", func(t *testing.T) (relay.Outcome, int) {
			w := newWire(t, reply(ok))
			m := newMessage("a")
			m.Headers = []relay.Header{{Name: "X", Value: "a\r\n" + canary}}
			return newSink(t, w.url(), nil).Send(t.Context(), m), w.count()
		}},
		{"The connection is reset or closed before an answer came", relay.KindUnknown, classReset, "before an answer came", func(t *testing.T) (relay.Outcome, int) {
			return sendWire(t, func(c net.Conn, _ int) { reset(c) }, nil)
		}},
		{"The connection is cut in the middle of the request", relay.KindUnknown, classReset, "before an answer came", sendHalf},
		{"The connection ends in the middle of the answer's headers", relay.KindUnknown, classReset, "before an answer came", func(t *testing.T) (relay.Outcome, int) {
			return sendWire(t, func(c net.Conn, _ int) { reply("HTTP/1.1 200 OK\r\n")(c, 0); _ = c.Close() }, nil)
		}},
		{"No answer within `timeout`", relay.KindUnknown, classTimeout, "no answer in time", func(t *testing.T) (relay.Outcome, int) {
			return sendWire(t, reply(""), quick)
		}},
		{"Nothing but interim answers (1xx) within `timeout`", relay.KindUnknown, classTimeout, "no answer in time", func(t *testing.T) (relay.Outcome, int) {
			return sendWire(t, reply("HTTP/1.1 103 Early Hints\r\n\r\n"), quick)
		}},
		{"The answer is none of HTTP", relay.KindUnknown, classOther, "no answer of HTTP", func(t *testing.T) (relay.Outcome, int) {
			return sendWire(t, reply("220 canary ESMTP\r\n"), nil)
		}},
		{"The answer's headers are larger than 64 KiB", relay.KindUnknown, classOther, "no answer of HTTP", func(t *testing.T) (relay.Outcome, int) {
			return sendWire(t, reply("HTTP/1.1 200 OK\r\nCanary: "+strings.Repeat("x", 2*maxHeaderBytes)+"\r\n\r\n"), nil)
		}},
		{"The status came, and its body is cut, endless or slow", relay.KindDone, "", "", func(t *testing.T) (relay.Outcome, int) {
			return sendWire(t, reply("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nstart"), quick)
		}},
	}
}

// sendTo sends a message to an address.
func sendTo(t *testing.T, to string, change func(*Config)) relay.Outcome {
	t.Helper()
	return newSink(t, to, change).Send(t.Context(), newMessage("a"))
}

// sendWire sends a message to a script.
func sendWire(t *testing.T, script func(net.Conn, int), change func(*Config)) (relay.Outcome, int) {
	t.Helper()
	w := newWire(t, script)
	return sendTo(t, w.url(), change), w.count()
}

// sendHalf sends a message to a server that reads the start of a large body.
func sendHalf(t *testing.T) (relay.Outcome, int) {
	t.Helper()
	l := listen(t, func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, 64<<10))
		reset(c)
	})
	m := newMessage("a")
	m.Payload = make([]byte, 64<<20) // more than every buffer on the way holds
	return newSink(t, "http://"+l, nil).Send(t.Context(), m), 1
}

// sendTLS sends a message over TLS to a server with a certificate of that name, from an authority that we trust or not.
func sendTLS(t *testing.T, name string, good time.Duration, config *tls.Config, trusted bool) (relay.Outcome, int) {
	t.Helper()
	ca := newAuthority(t)
	config.Certificates = []tls.Certificate{ca.issue(name, good)}
	var requests atomic.Int64
	l := listen(t, func(c net.Conn) {
		secure := tls.Server(c, config)
		if secure.HandshakeContext(t.Context()) != nil {
			_, _ = io.Copy(io.Discard, c) // so that what is on the way meets no closed connection
			return
		}
		if n, _ := secure.Read(make([]byte, 1)); n > 0 {
			requests.Add(1)
		}
	})
	o := sendTo(t, "https://"+l, func(c *Config) {
		if trusted {
			c.TLS = &TLS{CAFile: ca.file}
		}
	})
	return o, int(requests.Load())
}

// sendByToken sends a message that needs a token, which a script gives or not.
func sendByToken(t *testing.T, script func(net.Conn, int)) (relay.Outcome, int) {
	t.Helper()
	w, server := newWire(t, reply(ok)), newWire(t, script)
	o := sendTo(t, w.url(), func(c *Config) {
		c.OAuth2 = &OAuth2{TokenURL: server.url() + "?canary", ClientID: "me", ClientSecret: is(canary)}
	})
	return o, w.count()
}

// is a Source of a text.
func is(text string) Source { return func() (string, error) { return text, nil } }

// mute is a connection that takes nothing.
type mute struct{ net.Conn }

func (mute) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// faultTable has a row for every fault, and holds each to its outcome.
func faultTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| What happens | Outcome | `error_class` |\n|---|---|---|\n")
	fates := map[relay.Kind]string{}
	for _, f := range faults() {
		o, requests := f.send(t)
		if o.Kind != f.kind || o.Class != f.class || !strings.Contains(o.Err, f.says) {
			t.Errorf("%s: %+v, want %s %s that says %q", f.what, o, f.kind, f.class, f.says)
		}
		if strings.Contains(strings.ToLower(o.Err), canary) || strings.ContainsAny(o.Err, "\r\n") {
			t.Errorf("%s: it quotes what it should not, or is more than a line: %q", f.what, o.Err)
		}
		if o.Ours != (f.kind == relay.KindFail) {
			t.Errorf("%s: whose verdict is it: %+v", f.what, o)
		}
		if sent := f.kind == relay.KindUnknown || f.kind == relay.KindDone; sent && requests != 1 || !sent && requests != 0 {
			t.Errorf("%s: %d requests", f.what, requests)
		}
		if fate := fateOf(o); fates[o.Kind] != "" && fates[o.Kind] != fate {
			t.Errorf("%s: its fate %q is not that of the others that are %s", f.what, fate, o.Kind)
		} else {
			fates[o.Kind] = fate
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", f.what, o.Kind, code(o.Class))
	}
	return b.String()
}
