package webhook

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// TestStatuses is the table of statusRule, over a real server and for every status there is.
func TestStatuses(t *testing.T) {
	t.Parallel()
	to := serve(t, func(w http.ResponseWriter, r *http.Request) {
		status, err := strconv.Atoi(r.Header.Get("Status"))
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(status)
	})
	s := newSink(t, to, nil)
	want := map[int]relay.Outcome{
		400: {Kind: relay.KindFail, Reason: relay.Rejected, Class: class4xx, Err: "HTTP 400 Bad Request"},
		401: {Kind: relay.KindRetry, Class: classAuth, Err: "HTTP 401 Unauthorized", Limit: 3},
		402: {Kind: relay.KindFail, Reason: relay.Rejected, Class: class4xx, Err: "HTTP 402 Payment Required"},
		403: {Kind: relay.KindRetry, Class: classAuth, Err: "HTTP 403 Forbidden", Limit: 3},
		404: {Kind: relay.KindRetry, Class: classNotFound, Err: "HTTP 404 Not Found"},
		407: {Kind: relay.KindRetry, Class: classAuth, Err: "HTTP 407 Proxy Authentication Required"},
		410: {Kind: relay.KindRetry, Class: classNotFound, Err: "HTTP 410 Gone"},
		413: {Kind: relay.KindFail, Reason: relay.TooLarge, Class: classTooLarge, Err: "HTTP 413 Request Entity Too Large"},
		422: {Kind: relay.KindFail, Reason: relay.Rejected, Class: class4xx, Err: "HTTP 422 Unprocessable Entity"},
		429: {Kind: relay.KindRetry, Class: classThrottled, Err: "HTTP 429 Too Many Requests"},
		499: {Kind: relay.KindFail, Reason: relay.Rejected, Class: class4xx, Err: "HTTP 499"},
		503: {Kind: relay.KindRetry, Class: class5xx, Err: "HTTP 503 Service Unavailable"},
		599: {Kind: relay.KindRetry, Class: class5xx, Err: "HTTP 599"},
		777: {Kind: relay.KindRetry, Class: classOther, Err: "HTTP 777"},
	}
	passing := map[int]bool{405: true, 408: true, 409: true, 421: true, 425: true, 426: true}
	for status := 200; status <= 777; status++ {
		w, named := want[status]
		switch {
		case named:
		case status < 300:
			w = relay.Done("")
		case status < 400:
			w = relay.Retry(class3xx, "")
		case status < 500 && passing[status]:
			w = relay.Retry(class4xx, "")
		case status < 500:
			w = relay.Fail(relay.Rejected, class4xx, "")
		case status < 600:
			w = relay.Retry(class5xx, "")
		default:
			w = relay.Retry(classOther, "")
		}
		m := newMessage("a")
		m.Headers = []relay.Header{{Name: "Status", Value: strconv.Itoa(status)}}
		got := s.Send(t.Context(), m)
		if !named {
			w.Err = got.Err
		}
		w.Status = status
		if got != w || w.Kind != relay.KindDone && !strings.HasPrefix(got.Err, fmt.Sprintf("HTTP %d", status)) {
			t.Errorf("status %d: %+v, want %+v", status, got, w)
		}
	}
}

// TestWhatIsKept holds that an answer is in result and answer, cut, and never in the text that is also logged.
func TestWhatIsKept(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 10_000)
	for name, c := range map[string]struct {
		status   int
		location string
		body     string
		want     relay.Outcome
	}{
		"nothing":           {status: 204, want: relay.Done("")},
		"short":             {status: 200, body: "ok", want: relay.Done("ok")},
		"location":          {status: 201, location: "/orders/7", body: "ok", want: relay.Done("/orders/7")},
		"long":              {status: 200, body: long, want: relay.Outcome{Kind: relay.KindDone, Result: long[:255], Answer: long[:4096]}},
		"location and long": {status: 200, location: "/o", body: long, want: relay.Outcome{Kind: relay.KindDone, Result: "/o", Answer: long[:4096]}},
		"refused": {status: 422, body: "canary", want: relay.Outcome{
			Kind: relay.KindFail, Reason: relay.Rejected, Class: class4xx, Err: "HTTP 422 Unprocessable Entity", Answer: "canary",
		}},
		"not now": {status: 500, body: long, want: relay.Outcome{
			Kind: relay.KindRetry, Class: class5xx, Err: "HTTP 500 Internal Server Error", Answer: long[:4096],
		}},
		"redirect": {status: 307, location: "https://u:p@h/there?token=t#f", want: relay.Outcome{
			Kind: relay.KindRetry, Class: class3xx,
			Err: "HTTP 307 Temporary Redirect: redirects are not followed; it leads to https://h/there",
		}},
		"redirect to nowhere": {status: 302, location: "::", want: relay.Outcome{
			Kind: relay.KindRetry, Class: class3xx, Err: "HTTP 302 Found: redirects are not followed",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.location != "" {
					w.Header().Set(headerLocation, c.location)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			c.want.Status = c.status
			if got := newSink(t, to, nil).Send(t.Context(), newMessage("a")); got != c.want {
				t.Errorf("%.300v, want %.300v", got, c.want)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		header http.Header
		want   time.Duration
	}{
		"none":                 {},
		"seconds":              {header: http.Header{"Retry-After": {"5"}}, want: 5 * time.Second},
		"zero":                 {header: http.Header{"Retry-After": {"0"}}},
		"negative":             {header: http.Header{"Retry-After": {"-1"}}},
		"far":                  {header: http.Header{"Retry-After": {"999999999"}}, want: 24 * time.Hour},
		"beyond every integer": {header: http.Header{"Retry-After": {strings.Repeat("9", 40)}}, want: 24 * time.Hour},
		"no number":            {header: http.Header{"Retry-After": {"abc"}}},
		"fraction":             {header: http.Header{"Retry-After": {"1.5"}}},
		"date":                 {header: http.Header{"Retry-After": {"Sun, 29 Nov 2026 12:00:30 GMT"}}, want: 30 * time.Second},
		"past date":            {header: http.Header{"Retry-After": {"Sun, 29 Nov 2026 11:00:00 GMT"}}},
		"far date":             {header: http.Header{"Retry-After": {"Sun, 29 Nov 2099 11:00:00 GMT"}}, want: 24 * time.Hour},
		"by its own clock, which is ahead": {
			header: http.Header{"Retry-After": {"Sun, 29 Nov 2026 15:00:07 GMT"}, "Date": {"Sun, 29 Nov 2026 15:00:00 GMT"}},
			want:   7 * time.Second,
		},
	} {
		if got := retryAfter(c.header, now); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestRetryAfterOfRetries holds that every retry carries the receiver's wish, and a fail none.
func TestRetryAfterOfRetries(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]time.Duration{429: 7 * time.Second, 503: 7 * time.Second, 409: 7 * time.Second, 307: 7 * time.Second, 422: 0, 200: 0} {
		to := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(headerRetryAfter, "7")
			w.WriteHeader(status)
		})
		if got := newSink(t, to, nil).Send(t.Context(), newMessage("a")); got.RetryAfter != want {
			t.Errorf("status %d: %s, want %s", status, got.RetryAfter, want)
		}
	}
}
