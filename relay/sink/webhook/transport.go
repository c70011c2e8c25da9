package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"
)

const (
	connectTimeout  = 10 * time.Second // address, connection and TLS handshake
	idleTimeout     = 30 * time.Second // below what most servers and NATs keep an idle connection for
	maxHeaderBytes  = 64 << 10         // of an answer
	keepAlivePeriod = 15 * time.Second
)

// newTransport makes the connections of one destination. Nothing of it comes from the environment: no proxy. An answer is
// not decompressed. HTTP/1.1 only: a connection then carries one request at a time, so that what was written of it is known.
func newTransport(width int) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAlive: keepAlivePeriod}
	secure := &tls.Dialer{NetDialer: dialer, Config: &tls.Config{MinVersion: tls.VersionTLS12}}
	return &http.Transport{
		DialContext:            counting(dialer.DialContext),
		DialTLSContext:         counting(secure.DialContext),
		DisableCompression:     true,
		MaxIdleConnsPerHost:    width,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		Protocols:              protocols,
	}
}

// newRequest makes the POST. Its body is neither nil nor one that net/http could read a second time: with such a body
// net/http repeats a POST that has an Idempotency-Key by itself, and a send would be two requests. Therefore an empty body
// goes out chunked.
func newRequest(ctx context.Context, to *url.URL, headers http.Header, payload []byte) *http.Request {
	req := &http.Request{
		Method: http.MethodPost, URL: to, Header: headers,
		Body: io.NopCloser(bytes.NewReader(payload)), ContentLength: int64(len(payload)),
	}
	return req.WithContext(ctx)
}

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// counting makes connections that count what is written of requests. It sits above TLS, whose handshake is no request.
func counting(d dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := d(ctx, network, address)
		if err != nil {
			return nil, unconnected{err}
		}
		return &conn{Conn: c}, nil
	}
}

// unconnected says that there was no connection to send on.
type unconnected struct{ error }

func (u unconnected) Unwrap() error { return u.error }

// conn counts the writes of which something went out.
type conn struct {
	net.Conn
	writes atomic.Int64
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.writes.Add(1)
	}
	return n, err
}

// progress is what is known of one request.
type progress struct {
	conn   *conn // nil: it never had one
	before int64 // what was written to it for other requests
}

// watch makes a context in which a request reports its connection.
func (p *progress) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if c, ok := info.Conn.(*conn); ok {
			p.conn, p.before = c, c.writes.Load()
		}
	}})
}

// wrote tells whether any byte of the request went out. It is asked after RoundTrip returned an error, which waits until
// nothing writes any more.
func (p *progress) wrote() bool { return p.conn != nil && p.conn.writes.Load() > p.before }
