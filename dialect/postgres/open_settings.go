package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// limits are the time-outs of a relay's sessions.
type limits struct {
	lock      time.Duration // wait for a lock: at most a sixth of the lease, 2 s at most
	statement time.Duration // 0: as the server has it
	patience  time.Duration // wait for a byte of the server; 0: for ever
}

// limitsOf makes them out of the lease. A lease of 0 is a person's command, which may take its time.
func limitsOf(lease time.Duration) limits {
	if lease == 0 {
		return limits{lock: 2 * time.Second}
	}
	statement := min(max(lease/2, 5*time.Second), 30*time.Second)
	return limits{lock: min(lease/6, 2*time.Second), statement: statement, patience: statement + 5*time.Second}
}

// setting is one parameter of a PostgreSQL session.
type setting struct{ name, value string }

// settings are what every session has. A statement planned on an empty table would keep its sequential scan for ever, so
// there are none. A bitmap of an index reads all that fits, and a sort then takes the first of it: with statistics that are
// behind, a million for a hundred; so there are none of these, and an index's own order is followed. A compiled plan costs
// more than our statements take.
func (l limits) settings() []setting {
	s := []setting{
		{"default_transaction_isolation", "read committed"},
		{"enable_seqscan", "off"},
		{"enable_bitmapscan", "off"},
		{"jit", "off"},
		{"timezone", "UTC"},
		{"lock_timeout", milliseconds(l.lock)},
		{"idle_in_transaction_session_timeout", "10000"},
		{"tcp_user_timeout", "10000"},
	}
	if l.statement > 0 {
		s = append(s, setting{"statement_timeout", milliseconds(l.statement)})
	}
	return s
}

// setLocal writes the same for one transaction behind a pooler. Isolation is said when the transaction begins, and the
// time-out of a TCP connection is the pooler's own business.
func (l limits) setLocal() string {
	var b strings.Builder
	for _, s := range l.settings() {
		if s.name != "default_transaction_isolation" && s.name != "tcp_user_timeout" {
			b.WriteString("SET LOCAL " + s.name + " = '" + s.value + "'; ")
		}
	}
	return b.String()
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// dialer makes connections that do not wait for ever: lib/pq blocks in a read even after its context ended, and a network
// that swallows packets would hold it for a quarter of an hour.
type dialer struct{ patience time.Duration }

func (d dialer) net(timeout time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: timeout, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}
}

// Dial is part of pq.Dialer.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout is part of pq.Dialer.
func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	c, err := d.net(timeout).Dial(network, address)
	return d.wrap(c, err)
}

// DialContext is part of pq.DialerContext.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.net(0).DialContext(ctx, network, address)
	return d.wrap(c, err)
}

func (d dialer) wrap(c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	c = &greeted{Conn: c}
	if d.patience == 0 {
		return c, nil
	}
	return &patient{Conn: c, patience: d.patience}, nil
}

// patient is a connection whose reads and writes end after a while without progress. While lib/pq has set a deadline of its
// own, for the time in which it logs in, that one holds. An end of the stream is an error as any other: at a bare EOF lib/pq
// lets database/sql repeat the statement at once, while the server may still be at work on the first one, and the Store
// would not know that it asks again.
type patient struct {
	net.Conn
	patience time.Duration
	login    bool
}

func (p *patient) SetDeadline(t time.Time) error {
	p.login = !t.IsZero()
	return p.Conn.SetDeadline(t)
}

func (p *patient) Read(b []byte) (int, error) {
	if !p.login {
		if err := p.SetReadDeadline(time.Now().Add(p.patience)); err != nil {
			return 0, err
		}
	}
	n, err := p.Conn.Read(b)
	if errors.Is(err, io.EOF) && !p.login {
		err = &net.OpError{Op: "read", Net: "tcp", Err: io.ErrUnexpectedEOF}
	}
	return n, err
}

func (p *patient) Write(b []byte) (int, error) {
	if !p.login {
		if err := p.SetWriteDeadline(time.Now().Add(p.patience)); err != nil {
			return 0, err
		}
	}
	return p.Conn.Write(b)
}
