package integration

import (
	"bufio"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// side says which way bytes go.
type side int

const (
	toServer side = iota
	toClient
)

// part is what a proxy handles as a whole: a message on the wire, or a whole answer.
type part struct {
	side side
	what string // PostgreSQL: the statement that is run or answered; Kafka: the request's name, such as Produce
	tx   string // PostgreSQL: the statements of its transaction until now, this one included
	data []byte
}

// wire cuts the bytes of one connection into parts, as its protocol wants it. next is called by one goroutine a side.
type wire interface {
	next(side, *bufio.Reader) (part, error)
}

// proxy stands between a client and a server and does to the bytes what a bad network does. Without a trap it passes
// everything on.
type proxy struct {
	newWire  func(*proxy) wire
	listener net.Listener
	closing  chan struct{}
	running  sync.WaitGroup
	silent   atomic.Bool

	mu      sync.Mutex
	target  string
	down    bool
	traps   []*trap
	tallies []*tally
	links   map[*link]bool
}

// link is one connection through a proxy.
type link struct {
	client, server net.Conn
	muted          atomic.Bool // it lost bytes: nothing sensible can follow
}

func (l *link) close() {
	l.client.Close()
	l.server.Close()
}

func newProxy(t *testing.T, target string, newWire func(*proxy) wire) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{target: target, newWire: newWire, listener: listener, closing: make(chan struct{}), links: map[*link]bool{}}
	p.running.Go(p.accept)
	t.Cleanup(func() {
		close(p.closing)
		listener.Close()
		p.cutAll()
		p.running.Wait()
	})
	return p
}

// address is where clients connect to.
func (p *proxy) address() string { return p.listener.Addr().String() }

// cutAll closes every connection; clients may connect again.
func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// setDown(true) closes every connection, and new ones as soon as they are made, as a server does that is away.
func (p *proxy) setDown(down bool) {
	p.mu.Lock()
	p.down = down
	p.mu.Unlock()
	if down {
		p.cutAll()
	}
}

// setSilent(true) is a black hole: connections stay and can be made, and no byte arrives on either side. Those that
// lost bytes are closed by setSilent(false).
func (p *proxy) setSilent(silent bool) {
	p.silent.Store(silent)
	if silent {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if l.muted.Load() {
			l.close()
		}
	}
}

// setTarget leads new connections to another server, as a name does that was given to it. Those that are there stay.
func (p *proxy) setTarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(client) })
	}
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	l := &link{client: client, server: server}
	defer l.close()
	if !p.add(l) {
		return
	}
	defer p.remove(l)
	w := p.newWire(p)
	var pumps sync.WaitGroup
	pumps.Go(func() { p.pump(l, w, toServer, client, server) })
	pumps.Go(func() { p.pump(l, w, toClient, server, client) })
	pumps.Wait()
}

func (p *proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closing:
		return false
	default:
	}
	if !p.down {
		p.links[l] = true
	}
	return !p.down
}

func (p *proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// pump moves parts one way until either end is closed or a trap cuts the connection.
func (p *proxy) pump(l *link, w wire, s side, from io.Reader, to io.Writer) {
	defer l.close()
	in := bufio.NewReader(from)
	for {
		one, err := w.next(s, in)
		if len(one.data) > 0 && !p.pass(l, one, to) {
			return
		}
		if err != nil {
			return
		}
	}
}

// pass does with one part what the proxy was told, and reports whether the connection lives on.
func (p *proxy) pass(l *link, one part, to io.Writer) bool {
	if !p.await(one) {
		return false
	}
	if p.silent.Load() || l.muted.Load() {
		l.muted.Store(true)
		return true
	}
	_, err := to.Write(one.data)
	return err == nil
}
