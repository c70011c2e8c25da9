package receive

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// When says on which side of the work something happens.
type When string

// The two sides, and neither.
const (
	Never  When = ""
	Before When = "before"
	After  When = "after"
)

// Behaviour is how a request is treated. Its zero value does the work and answers 200.
type Behaviour struct {
	Status     int           // of the answer, 200 to 599; from 300 on the work is not done; 0: 200
	Latency    time.Duration // that the work takes
	RetryAfter time.Duration // goes with an answer that is not 2xx; whole seconds, rounded up; 0: none
	Cut        When          // the connection is closed in place of an answer
	Hang       When          // there is no answer until the sender leaves
}

// Check finds a behaviour that cannot be.
func (b Behaviour) Check() error {
	switch {
	case b.Status != 0 && (b.Status < 200 || b.Status > 599):
		return fmt.Errorf("status wants 200 to 599")
	case b.Latency < 0:
		return fmt.Errorf("latency wants 0 or more")
	case b.RetryAfter < 0:
		return fmt.Errorf("retry-after wants 0 or more")
	case b.Cut != Never && b.Cut != Before && b.Cut != After:
		return fmt.Errorf("cut wants before or after")
	case b.Hang != Never && b.Hang != Before && b.Hang != After:
		return fmt.Errorf("hang wants before or after")
	}
	return nil
}

// with is b, and what a URL's query asks for over it: ?status=503&retry-after=2s. Other keys of a query are not ours.
func (b Behaviour) with(query url.Values) (Behaviour, error) {
	var err error
	duration := func(key string, into *time.Duration) {
		if query.Has(key) && err == nil {
			if *into, err = time.ParseDuration(query.Get(key)); err != nil {
				err = fmt.Errorf("%s wants a duration such as 200ms or 2s", key)
			}
		}
	}
	if query.Has("status") {
		if b.Status, err = strconv.Atoi(query.Get("status")); err != nil {
			err = fmt.Errorf("status wants a number")
		}
	}
	duration("latency", &b.Latency)
	duration("retry-after", &b.RetryAfter)
	if query.Has("cut") {
		b.Cut = When(query.Get("cut"))
	}
	if query.Has("hang") {
		b.Hang = When(query.Get("hang"))
	}
	if err != nil {
		return b, err
	}
	return b, b.Check()
}

// failing is the status where some requests shall fail and nobody said how.
func (b Behaviour) failing() int {
	if b.Cut == Never && b.Hang == Never {
		return http.StatusServiceUnavailable
	}
	return 0
}

// spoils tells whether the work is not done.
func (b Behaviour) spoils() bool { return b.Status >= 300 || b.Cut == Before || b.Hang == Before }

// spoilt is the answer then.
func (b Behaviour) spoilt() answer {
	a := answer{
		status: b.Status, cut: b.Cut == Before, hang: b.Hang == Before, retryAfter: b.RetryAfter,
		text: "asked to answer so\n",
	}
	return a
}

// delivered is the answer to work that was done, on its way.
func (b Behaviour) delivered(a answer) answer {
	a.cut, a.hang = b.Cut == After, b.Hang == After
	return a
}

// answer is what a sender gets.
type answer struct {
	status     int
	text       string
	json       bool
	repeat     bool // it was given before
	retryAfter time.Duration
	cut, hang  bool // it is not given
}

// words is the answer in a line.
func (a answer) words() string {
	switch {
	case a.hang:
		return "hangs"
	case a.cut:
		return "cut"
	}
	return strconv.Itoa(a.status)
}

func (a answer) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	if a.json {
		h.Set("Content-Type", "application/json")
	}
	if a.repeat {
		h.Set("Idempotent-Replayed", "true") // as Stripe says it
	}
	if a.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(a.retryAfter.Seconds()))))
	}
	if a.status/100 == 3 {
		h.Set("Location", "/") // that nobody should follow
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.text)
}
