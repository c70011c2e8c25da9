package kafka

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// wire dials for sarama and counts connections. A message whose batch met a connection that could not be made went out
// only if an earlier try of it did, and then the connection of that try was lost: where none was lost since the message
// was handed over, it is unsent, and sarama alone could not tell.
type wire struct {
	net.Dialer
	open, lost atomic.Int64
}

func newWire(timeout time.Duration) *wire { return &wire{Dialer: net.Dialer{Timeout: timeout}} }

// Dial implements proxy.Dialer for sarama.
func (w *wire) Dial(network, addr string) (net.Conn, error) {
	conn, err := w.Dialer.Dial(network, addr)
	if err != nil {
		return nil, err
	}
	w.open.Add(1)
	return &counted{Conn: conn, wire: w}, nil
}

type counted struct {
	net.Conn
	wire *wire
	once sync.Once
}

// Close counts the connection out.
func (c *counted) Close() error {
	c.once.Do(func() {
		c.wire.open.Add(-1)
		c.wire.lost.Add(1)
	})
	return c.Conn.Close()
}
