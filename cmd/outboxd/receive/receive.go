// Package receive is the other side of a webhook, for trying things out: it does each piece of work once for its key, and
// answers late, badly or not at all when it is told to. Start reading at Receiver.ServeHTTP; keys.go is what any receiver
// needs.
package receive

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// What a request may be. It has limits, so that no sender can take all memory.
const (
	allowed      = "GET, HEAD, OPTIONS, PATCH, POST, PUT"
	maxBodyBytes = 16 << 20
	maxKeyBytes  = 255
)

// Options says how a receiver works.
type Options struct {
	KeyHeader string        // whose value is a request's key
	Remember  time.Duration // how long a key is remembered; 0: not at all, so that every repeat is an effect
	MaxKeys   int           // more are not kept: the oldest is forgotten
	Secrets   Secrets       // none: signatures are not looked at
	Bearer    string        // the token that is demanded; empty: none

	Behaviour Behaviour
	Fail      int     // the behaviour, but for its latency, is only for the first so many requests
	FailRate  float64 // or for this share of them, by chance; both 0: for all

	Out    io.Writer // gets a line for each request
	Bodies bool      // the lines show the bodies
	Count  int       // after so many effects Enough is called, once
	Enough func()
}

// Receiver is an http.Handler. It counts what it does.
type Receiver struct {
	options Options
	keys    *keys
	closed  chan struct{}

	mu       sync.Mutex
	requests int // that came, for Fail; the tally has those that were told of
	tally    Tally
}

// New makes a Receiver.
func New(o Options) *Receiver {
	if o.Fail > 0 || o.FailRate > 0 {
		o.Behaviour.Status = cmp.Or(o.Behaviour.Status, o.Behaviour.failing())
	}
	return &Receiver{options: o, keys: newKeys(o.Remember, o.MaxKeys), closed: make(chan struct{})}
}

// Close lets go of the requests that wait or hang.
func (r *Receiver) Close() { close(r.closed) }

// ServeHTTP answers a POST to any path. GET / shows what came so far.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch req.Method {
	case http.MethodGet, http.MethodHead:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		r.page(w)
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		r.take(w, req)
	case http.MethodOptions: // whoever asks what may be done here learns also whether the token is good
		w.Header().Set("Allow", allowed)
		if !r.knows(req) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", allowed)
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// take receives a request: it is told of in a line before it is answered.
func (r *Receiver) take(w http.ResponseWriter, req *http.Request) {
	v := newVisit(req)
	a := r.receive(w, req, &v)
	v.answer = a.words()
	r.note(v)
	switch {
	case a.hang:
		r.wait(req, nil)
		panic(http.ErrAbortHandler) // net/http then closes the connection without an answer, and says nothing
	case a.cut:
		panic(http.ErrAbortHandler)
	}
	a.write(w)
}

// receive does the work of a request, unless it may not be done, was done, or is not to be done now.
func (r *Receiver) receive(w http.ResponseWriter, req *http.Request, v *visit) answer {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBodyBytes))
	v.body = body
	if err != nil {
		return v.refuse(Unreadable, unreadableStatus(err), "the body cannot be read, or has more than 16 MiB")
	}
	b, err := r.behaviour().with(req.URL.Query())
	if err != nil {
		return v.refuse(Unreadable, http.StatusBadRequest, err.Error())
	}
	if a, ok := r.prove(req, body, v); !ok {
		return a
	}
	if v.key = bare(req.Header.Get(r.options.KeyHeader)); v.key == "" || len(v.key) > maxKeyBytes {
		return v.refuse(NoKey, http.StatusBadRequest,
			fmt.Sprintf("the header %s is missing, or has more than %d characters", r.options.KeyHeader, maxKeyBytes))
	}
	if b.spoils() {
		r.wait(req, time.After(b.Latency))
		v.verdict = NoEffect
		return b.spoilt()
	}
	return r.once(b, v, sha256.Sum256(body))
}

// once does the work once for each key. Here it is a number; where the work is a change in a database, the key is written
// in the transaction of that change.
func (r *Receiver) once(b Behaviour, v *visit, body [sha256.Size]byte) answer {
	seen, first, verdict := r.keys.begin(v.key, v.kind, body)
	switch v.verdict = verdict; verdict {
	case Running:
		return v.refuse(Running, http.StatusConflict, "the first request with this key is not done yet: come again")
	case OtherBody:
		return v.refuse(OtherBody, http.StatusUnprocessableEntity, "this key came with another body before: it needs a key of its own")
	case Repeat:
		first.repeat = true
		return b.delivered(first)
	default: // Effect
		r.wait(nil, time.After(b.Latency)) // a sender that leaves does not stop the work
		return b.delivered(r.keys.finish(seen, cmp.Or(b.Status, http.StatusOK)))
	}
}

// behaviour says how the next request is treated.
func (r *Receiver) behaviour() Behaviour {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	o := r.options
	if o.Fail == 0 && o.FailRate == 0 || r.requests <= o.Fail || rand.Float64() < o.FailRate {
		return o.Behaviour
	}
	return Behaviour{Latency: o.Behaviour.Latency}
}

// wait waits for a time, the receiver's end, or the leave of the sender if there is a req.
func (r *Receiver) wait(req *http.Request, until <-chan time.Time) {
	var left <-chan struct{}
	if req != nil {
		left = req.Context().Done()
	}
	select {
	case <-until:
	case <-left:
	case <-r.closed:
	}
}

func unreadableStatus(err error) int {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// bare takes a key out of the quotes that a string of RFC 9651 has.
func bare(key string) string {
	inside, opened := strings.CutPrefix(key, `"`)
	inside, closed := strings.CutSuffix(inside, `"`)
	if !opened || !closed {
		return key
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(inside)
}
