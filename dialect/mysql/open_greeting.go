package mysql

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/outboxd/outboxd/dialect"
)

// greeted is a connection whose beginning was looked at: the server speaks first, and what begins otherwise is another
// service, for which it would not help to wait.
type greeted struct {
	net.Conn
	head []byte // was looked at, and is still to be read
}

// silentError is of an address that takes connections and says nothing.
type silentError struct{ address string }

func (e *silentError) Error() string { return "no greeting from " + e.address }

// dial connects, and does not wait for ever on a network that swallows packets.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	g := &greeted{Conn: conn, head: make([]byte, 5)}
	if err := g.listen(ctx, address); err != nil {
		_ = conn.Close() // The first error tells more.
		return nil, err
	}
	return g, nil
}

// listen reads the head of the first packet: 3 bytes of length, the number 0, and then the protocol's version 10 or the
// mark of an error. MySQL Internals Manual, "Connection Phase".
func (g *greeted) listen(ctx context.Context, address string) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(connectTimeout)
	}
	if err := g.SetReadDeadline(deadline); err != nil {
		return err
	}
	_, err := io.ReadFull(g.Conn, g.head)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &silentError{address}
	case err != nil:
		return err
	case g.head[3] != 0 || g.head[4] != 10 && g.head[4] != 0xff:
		return dialect.Refuse(dialect.ErrServer, "what listens at %s is no MySQL or MariaDB: check host and port of the database URL", address)
	}
	return g.SetReadDeadline(time.Time{})
}

func (g *greeted) Read(b []byte) (int, error) {
	if len(g.head) > 0 {
		n := copy(b, g.head)
		g.head = g.head[n:]
		return n, nil
	}
	return g.Conn.Read(b)
}

// SyscallConn lets the driver see that the server ended a connection before it sends anything on it.
func (g *greeted) SyscallConn() (syscall.RawConn, error) {
	c, ok := g.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return c.SyscallConn()
}
