package integration

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// receiver is the other side of webhooks: HTTP/1.1 over TCP, read off the wire request by request, so that what it counts is
// what was sent. It does with each what the test says, and keeps all of them.
type receiver struct {
	at      string // host and port, the same for all of its life
	secure  *tls.Config
	running sync.WaitGroup
	closing chan struct{}

	mu          sync.Mutex
	listener    net.Listener // nil: it refuses connections
	conns       map[net.Conn]bool
	opened      int // connections until now
	answer      func(*request) reply
	requests    []*request
	times       map[string]int // by wire key
	underWay    int
	most, ended int
}

// request is one that came off the wire, and what was under way then.
type request struct {
	key    string // the wire key
	header http.Header
	body   string
	at     time.Time // when it was there, whole
	nth    int       // of its wire key, from 1
	conn   int       // the number of its connection
	beside int       // under way at its beginning, itself included
	before int       // ended before its beginning
	over   time.Time // when it was answered, cut or given up; zero: it is under way
	what   reply
}

// status is what it was answered with, if it was.
func (r *request) status() int { return cmp.Or(r.what.status, http.StatusOK) }

// reply is what becomes of a request.
type reply struct {
	status int           // 0: 200
	header string        // lines of a header, each with its CRLF
	body   string        // of the answer
	takes  time.Duration // until it is answered
	until  chan struct{} // and not before this is closed
	cut    bool          // the connection is closed in place of an answer
	last   bool          // the connection is closed after the answer, without a word about that
}

// always is the same reply to every request.
func always(r reply) func(*request) reply { return func(*request) reply { return r } }

func newReceiver(t *testing.T, answer func(*request) reply) *receiver {
	t.Helper()
	return newSecureReceiver(t, nil, answer)
}

// newSecureReceiver makes a receiver that speaks TLS; nil is none.
func newSecureReceiver(t *testing.T, secure *tls.Config, answer func(*request) reply) *receiver {
	t.Helper()
	r := &receiver{
		at: "127.0.0.1:0", secure: secure, answer: answer, closing: make(chan struct{}),
		conns: map[net.Conn]bool{}, times: map[string]int{},
	}
	r.open(t)
	t.Cleanup(func() {
		close(r.closing)
		r.refuse()
		r.running.Wait()
	})
	return r
}

func (r *receiver) url() string {
	if r.secure != nil {
		return "https://" + r.at + "/commands"
	}
	return "http://" + r.at + "/commands"
}

// refuse closes the listener and every connection: whoever dials is refused.
func (r *receiver) refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != nil {
		r.listener.Close()
		r.listener = nil
	}
	for c := range r.conns {
		c.Close()
	}
}

// open listens, again where it was before.
func (r *receiver) open(t *testing.T) {
	t.Helper()
	eventually(t, patience, func() error { // somebody may have the port for a moment
		listener, err := net.Listen("tcp", r.at)
		if err != nil {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.at, r.listener = listener.Addr().String(), listener
		r.running.Go(func() { r.accept(listener) })
		return nil
	})
}

// answers says what becomes of requests from now on.
func (r *receiver) answers(answer func(*request) reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *receiver) accept(listener net.Listener) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		if r.listener == listener {
			r.conns[c] = true
			r.opened++
			n := r.opened
			r.running.Go(func() { r.serve(c, n) })
		} else {
			c.Close()
		}
		r.mu.Unlock()
	}
}

func (r *receiver) serve(raw net.Conn, number int) {
	defer func() {
		raw.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.conns, raw)
	}()
	c := raw
	if r.secure != nil {
		c = tls.Server(raw, r.secure)
	}
	in := bufio.NewReader(c)
	for {
		got, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(got.Body)
		if err != nil {
			return
		}
		one, what := r.take(got.Header, string(body), number)
		next := make(chan error, 1)
		r.running.Go(func() {
			_, err := in.Peek(1) // the next request, or the end of the connection
			next <- err
		})
		if !r.reply(c, one, what, next) {
			return
		}
	}
}

// take keeps a request, and asks what becomes of it.
func (r *receiver) take(header http.Header, body string, conn int) (*request, reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := &request{key: header.Get("Idempotency-Key"), header: header, body: body, at: time.Now(), conn: conn, before: r.ended}
	r.times[one.key]++
	r.underWay++
	r.most = max(r.most, r.underWay)
	one.nth, one.beside = r.times[one.key], r.underWay
	r.requests = append(r.requests, one)
	one.what = r.answer(one)
	return one, one.what
}

// reply does what was said, and reports whether another request follows on the connection. What is under way ends before
// its answer can be read, so that no two are counted at once of which the second was sent after the answer to the first.
func (r *receiver) reply(c net.Conn, one *request, what reply, next chan error) bool {
	answered, err := r.await(what, next)
	r.mu.Lock()
	one.over = time.Now()
	r.underWay--
	r.ended++
	r.mu.Unlock()
	if !answered || what.cut {
		return false
	}
	status := one.status()
	_, _ = fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Length: %d\r\n%s\r\n%s", // whoever is gone asks no more
		status, http.StatusText(status), len(what.body), what.header, what.body)
	if what.last {
		return false
	}
	if err == nil {
		err = <-next
	}
	return err == nil
}

// await waits as long as the reply says. answered is false where nobody waits for the answer any more.
func (r *receiver) await(what reply, next chan error) (answered bool, err error) {
	if what.takes > 0 {
		timer := time.NewTimer(what.takes)
		defer timer.Stop()
		select {
		case <-timer.C:
		case err := <-next:
			return false, err
		case <-r.closing:
			return false, nil
		}
	}
	if what.until != nil {
		select {
		case <-what.until:
		case err := <-next:
			return false, err
		case <-r.closing:
			return false, nil
		}
	}
	return true, nil
}

// seen are the requests until now, in the order of their arrival.
func (r *receiver) seen() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]request, len(r.requests))
	for i, one := range r.requests {
		all[i] = *one
	}
	return all
}

// byKey are the requests of each wire key.
func (r *receiver) byKey() map[string][]request {
	all := map[string][]request{}
	for _, one := range r.seen() {
		all[one.key] = append(all[one.key], one)
	}
	return all
}

// figures are how many requests came, how many of them are under way, and how many were so at once.
func (r *receiver) figures() (came, underWay, most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.requests), r.underWay, r.most
}

// connections is how many were made until now.
func (r *receiver) connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.opened
}

// waitUnderWay waits until so many requests are under way.
func (r *receiver) waitUnderWay(t *testing.T, n int) {
	t.Helper()
	eventually(t, patience, func() error {
		if _, now, _ := r.figures(); now != n {
			return fmt.Errorf("%d requests are under way, want %d", now, n)
		}
		return nil
	})
}
