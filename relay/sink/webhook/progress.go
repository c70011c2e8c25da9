package webhook

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// counting makes connections that tell a request what is written of it. It sits above TLS, whose handshake is no request.
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

// conn is a connection that knows which request it carries.
type conn struct {
	net.Conn
	carries atomic.Pointer[progress] // nil: none that wants to know
}

// errLate refuses the first byte of a request.
var errLate = errors.New("too late to begin")

func (c *conn) Write(b []byte) (int, error) {
	p := c.carries.Load()
	if p == nil {
		return c.Conn.Write(b)
	}
	if !p.written.Load() && !p.startBy.IsZero() && !time.Now().Before(p.startBy) {
		p.tooLate.Store(true)
		return 0, errLate
	}
	n, err := c.Conn.Write(b)
	if n > 0 {
		p.written.Store(true)
	}
	return n, err
}

// progress is what is known of one request.
type progress struct {
	startBy time.Time // its first byte goes out before this, or never; zero: at any time
	written atomic.Bool
	tooLate atomic.Bool
	reused  atomic.Bool // its connection has carried another one
}

// watch makes a context in which a request tells its connection to report to p.
func (p *progress) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		p.reused.Store(info.Reused)
		if c, ok := info.Conn.(*conn); ok {
			c.carries.Store(p)
		}
	}})
}

// wrote tells whether any byte of the request went out. It is asked after RoundTrip returned an error, which waits until
// nothing writes any more.
func (p *progress) wrote() bool { return p.written.Load() }

// late tells that nothing went out because it was too late.
func (p *progress) late() bool { return p.tooLate.Load() && !p.written.Load() }
