package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	idleTimeout     = 30 * time.Second // below what most servers and NATs keep an idle connection for
	maxHeaderBytes  = 64 << 10         // of an answer
	keepAlivePeriod = 15 * time.Second
)

// newTransport makes the connections of one destination. Nothing of it comes from the environment: no proxy. An answer is
// not decompressed. HTTP/1.1 only: a connection then carries one request at a time, so that what was written of it is known.
func newTransport(d *dialer, width int, fresh bool) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext:            counting(d.dial),
		DialTLSContext:         counting(d.dialTLS),
		DisableCompression:     true,
		DisableKeepAlives:      fresh,
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

// dialer makes connections.
type dialer struct {
	net     net.Dialer
	tls     *tls.Config
	timeout time.Duration // of address, connection and handshake together
}

func newDialer(cfg Config, secure *tls.Config) *dialer {
	d := &dialer{net: net.Dialer{KeepAlive: keepAlivePeriod}, tls: secure, timeout: cfg.ConnectTimeout}
	if cfg.PublicOnly {
		d.net.Control = newEgress().control
	}
	return d
}

// tokenDialer makes the dialer to a token server, under the same rules. The name that the receiver's certificate has to
// have is not that of another host.
func (d *dialer) tokenDialer(cfg Config) *dialer {
	receiver, _ := readURL(cfg.URL)
	server, _ := readURL(cfg.OAuth2.TokenURL)
	if receiver.Hostname() == server.Hostname() {
		return d
	}
	other := *d
	other.tls = d.tls.Clone()
	other.tls.ServerName = ""
	return &other
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	return d.net.DialContext(ctx, network, address)
}

func (d *dialer) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	raw, err := d.net.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return d.handshake(ctx, raw, address)
}

// handshake makes a connection a secure one, or closes it.
func (d *dialer) handshake(ctx context.Context, raw net.Conn, address string) (*tls.Conn, error) {
	config := d.tls
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			_ = raw.Close()
			return nil, err
		}
		config = config.Clone()
		config.ServerName = host
	}
	secure := tls.Client(raw, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, insecure{err}
	}
	return secure, nil
}

// insecure says that there was a connection, but no TLS on it.
type insecure struct{ error }

func (i insecure) Error() string { return "TLS handshake: " + i.error.Error() }
func (i insecure) Unwrap() error { return i.error }
