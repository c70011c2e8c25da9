package webhook

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/outboxd/outboxd/relay"
)

const (
	maxErrBytes      = 1 << 10        // of a text about a send
	maxResultBytes   = 255            // what the result column holds; what is longer is an answer
	maxKeptBytes     = 4 << 10        // of an answer
	maxRetryAfter    = 24 * time.Hour // the relay follows none for longer
	headerLocation   = "Location"     // RFC 9110, 10.2.2
	headerDate       = "Date"         // RFC 9110, 6.6.1
	headerRetryAfter = "Retry-After"  // RFC 9110, 10.2.3
)

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte // the start of it, 64 KiB at most
}

// judge makes the outcome of an answer. What the receiver wrote goes into result and answer alone: an error text is also
// logged, and an answer may repeat the payload.
func (s *Sink) judge(a answer, now time.Time) relay.Outcome {
	o := s.rules.of(a.status)
	if o.Kind == relay.KindRetry {
		o.RetryAfter = retryAfter(a.header, now)
		throttles := a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable
		o.Hold = throttles && o.RetryAfter > 0
	}
	if to := place(a.header.Get(headerLocation)); o.Class == class3xx && to != "" {
		o.Err += "; it leads to " + to
	}
	if o.Kind == relay.KindDone {
		o.Result = a.result(s.result)
	}
	// A short answer to a done message is in its result, but for what a pointer leaves out when it leads nowhere.
	if o.Kind != relay.KindDone || len(a.body) > maxResultBytes || o.Result == "" {
		o.Answer = string(a.body)
	}
	return o
}

// result is the reference in an answer: what the pointer leads to, else Location, else the start of the body. A pointer
// that leads nowhere gives none.
func (a answer) result(pointer string) string {
	if pointer != "" {
		found, _ := lookup(a.body, pointer)
		return found
	}
	if to := a.header.Get(headerLocation); to != "" {
		return to
	}
	return strings.TrimSpace(string(a.body)) // a reference has no line end
}

// place is a URL without what may be secret in it, but for the destination's own path.
func place(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// retryAfter is how long the receiver asks to be left alone, at most 24 h: seconds, or a date as the receiver's own clock
// has it. 0: it does not ask, asks for a time that is over, or in no form that there is.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get(headerRetryAfter)
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(header.Get(headerDate)); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
