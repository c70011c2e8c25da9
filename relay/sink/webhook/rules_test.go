package webhook

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// answering is a server whose answers a message asks for, by its type: a status, and a body behind it.
func answering(t *testing.T, header http.Header) string {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		status, body, _ := strings.Cut(r.Header.Get(headerType), " ")
		maps.Copy(w.Header(), header)
		w.WriteHeader(must(strconv.Atoi(status)))
		_, _ = io.WriteString(w, body)
	})
}

func answerOf(t *testing.T, s *Sink, status int) relay.Outcome {
	t.Helper()
	m := newMessage("a")
	m.Type = strconv.Itoa(status)
	return s.Send(t.Context(), m)
}

// TestOutcomesOfADestination holds that a destination's own outcomes go before the usual ones, and a status before its class.
func TestOutcomesOfADestination(t *testing.T) {
	t.Parallel()
	s := newSink(t, answering(t, nil), func(c *Config) {
		c.RemembersFailures = true
		c.Outcomes = map[string]relay.Rule{
			"404": {Kind: relay.KindFail}, "409": {Kind: relay.KindDone}, "418": {Kind: relay.KindRetry, Limit: 5},
			"4xx": {Kind: relay.KindUnknown}, "401": {Kind: relay.KindRetry}, "413": {Kind: relay.KindFail},
			"503": {Kind: relay.KindRetry}, "202": {Kind: relay.KindRetry}, "302": {Kind: relay.KindDone},
		}
	})
	for status, want := range map[int]relay.Outcome{
		200: relay.Done(""),
		202: {Kind: relay.KindRetry, Class: classOther, Err: "HTTP 202 Accepted, retry by the outcomes of this destination"},
		302: relay.Done(""),
		303: {Kind: relay.KindRetry, Class: class3xx, Err: "HTTP 303 See Other: redirects are not followed"},
		400: {Kind: relay.KindUnknown, Class: class4xx, Err: "HTTP 400 Bad Request, unknown by the outcomes of this destination"},
		401: {Kind: relay.KindRetry, Class: classAuth, Err: "HTTP 401 Unauthorized, retry by the outcomes of this destination"},
		403: {Kind: relay.KindUnknown, Class: classAuth, Err: "HTTP 403 Forbidden, unknown by the outcomes of this destination"},
		404: {Kind: relay.KindFail, Reason: relay.Rejected, Class: classNotFound, Err: "HTTP 404 Not Found, fail by the outcomes of this destination"},
		409: relay.Done(""),
		413: {Kind: relay.KindFail, Reason: relay.TooLarge, Class: classTooLarge, Err: "HTTP 413 Request Entity Too Large, fail by the outcomes of this destination"},
		418: {Kind: relay.KindRetry, Class: class4xx, Limit: 5, Err: "HTTP 418 I'm a teapot, retry by the outcomes of this destination"},
		500: {Kind: relay.KindRetry, Reason: relay.Unknowable, Class: class5xx, Err: "HTTP 500 Internal Server Error: it remembers its failures, and would answer this key so for ever"},
		503: {Kind: relay.KindRetry, Class: class5xx, Err: "HTTP 503 Service Unavailable, retry by the outcomes of this destination"},
	} {
		want.Status = status
		if got := answerOf(t, s, status); got != want {
			t.Errorf("status %d: %+v, want %+v", status, got, want)
		}
	}
}

// TestRemembersFailures holds that every 5xx of such a destination ends its message, charged.
func TestRemembersFailures(t *testing.T) {
	t.Parallel()
	s := newSink(t, answering(t, nil), func(c *Config) { c.RemembersFailures = true })
	for status := 200; status <= 599; status++ {
		o := answerOf(t, s, status)
		if final := o.Kind == relay.KindRetry && o.Reason == relay.Unknowable; final != (status >= 500) {
			t.Errorf("status %d: %+v", status, o)
		}
	}
	row := relay.Decide(relay.Try{Outcome: answerOf(t, s, 500), Policy: policy()}).Row()
	if row.State != relay.Failed || row.Reason != relay.Unknowable || !row.Charge || !row.MarkUnknown {
		t.Errorf("%+v", row)
	}
}

// TestGone holds that a 410 pauses a destination only where that is asked for.
func TestGone(t *testing.T) {
	t.Parallel()
	for _, pauses := range []bool{false, true} {
		s := newSink(t, answering(t, nil), func(c *Config) { c.OnGonePause = pauses })
		for _, status := range []int{200, 404, 410, 500} {
			if o := answerOf(t, s, status); o.Pause != (pauses && status == 410) || status == 410 && o.Kind != relay.KindRetry {
				t.Errorf("on_gone %t, status %d: %+v", pauses, status, o)
			}
		}
	}
	for _, kind := range []relay.Kind{relay.KindDone, relay.KindFail, relay.KindUnknown, relay.KindRetry} {
		r := rules{outcomes: map[string]relay.Rule{"4xx": {Kind: kind}}, onGonePause: true}
		if o := r.of(http.StatusGone); o.Kind != kind || o.Pause != (kind == relay.KindRetry) {
			t.Errorf("%s by the outcomes: %+v", kind, o)
		}
	}
}

// TestHold holds that a Retry-After of 429 and 503 is about the whole destination, where it asks for anything.
func TestHold(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"5": 5 * time.Second, "0": 0, "-1": 0, "abc": 0, "Mon, 01 Jan 2001 00:00:00 GMT": 0, "999999999": maxRetryAfter,
	} {
		s := newSink(t, answering(t, http.Header{headerRetryAfter: {text}}), nil)
		for _, status := range []int{200, 302, 408, 422, 429, 500, 503} {
			o := answerOf(t, s, status)
			asks := o.Kind == relay.KindRetry && want > 0
			if o.Hold != (asks && (status == 429 || status == 503)) || asks && o.RetryAfter != want || !asks && o.RetryAfter != 0 {
				t.Errorf("%s, status %d: %+v", text, status, o)
			}
		}
	}
}

// TestResult holds what the reference of a done message is.
func TestResult(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ö", 300)
	for name, c := range map[string]struct {
		pointer, location, body string
		result, answer          string
	}{
		"pointer":                        {pointer: "/id", location: "/o/7", body: `{"id":9007199254740993}`, result: "9007199254740993"},
		"pointer to nothing":             {pointer: "/no", location: "/o/7", body: `{"id":1}`, answer: `{"id":1}`},
		"pointer into no JSON":           {pointer: "/id", body: "ok", answer: "ok"},
		"pointer, and a long answer":     {pointer: "/id", body: `{"id":"x","t":"` + long + `"}`, result: "x", answer: `{"id":"x","t":"` + long + `"}`},
		"pointer to a long text":         {pointer: "/t", body: `{"t":"` + long + `"}`, result: long[:254], answer: `{"t":"` + long + `"}`},
		"location":                       {location: "/o/7", body: "ok", result: "/o/7"},
		"long location":                  {location: "/" + strings.Repeat("x", 300), result: "/" + strings.Repeat("x", 254)},
		"start of the body":              {body: "ok", result: "ok"},
		"start of a long body":           {body: long, result: long[:254], answer: long},
		"start of a very long body":      {body: strings.Repeat(long, 10), result: long[:254], answer: strings.Repeat(long, 10)[:4096]},
		"a large one, cut between runes": {body: "x" + strings.Repeat(long, 10), result: "x" + long[:254], answer: "x" + strings.Repeat(long, 10)[:4094]},
	} {
		to := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if c.location != "" {
				w.Header().Set(headerLocation, c.location)
			}
			_, _ = io.WriteString(w, c.body)
		})
		s := newSink(t, to, func(cfg *Config) { cfg.Result = c.pointer })
		if o := s.Send(t.Context(), newMessage("a")); o.Kind != relay.KindDone || o.Result != c.result || o.Answer != c.answer {
			t.Errorf("%s: %s", name, fmt.Sprintf("%.600v", o))
		}
	}
}
