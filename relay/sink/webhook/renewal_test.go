package webhook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeServer is a token server inside a synctest bubble.
type fakeServer struct {
	asked int
	after time.Duration // until it answers
	give  func(nth int) (status int, body string)
}

func (f *fakeServer) RoundTrip(req *http.Request) (*http.Response, error) {
	f.asked++
	nth := f.asked
	select {
	case <-time.After(f.after):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	status, body := f.give(nth)
	return &http.Response{
		StatusCode: status, Status: strconv.Itoa(status), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewBufferString(body)), Request: req,
	}, nil
}

func (f *fakeServer) tokens(t *testing.T) *tokens {
	return &tokens{
		server: OAuth2{TokenURL: "http://h", ClientID: "me", ClientSecret: is("canary")},
		client: &http.Client{Transport: f}, timeout: 20 * time.Second, life: t.Context(),
	}
}

// pass lets time pass in the bubble.
func pass(d time.Duration) { <-time.After(d) }

// hour gives tokens of an hour.
func hour(nth int) (int, string) {
	return http.StatusOK, fmt.Sprintf(`{"access_token":"%d","expires_in":3600}`, nth)
}

// TestRenewal holds that the next token is asked for before the end of the old one, and that no send waits for it.
func TestRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{after: time.Second, give: hour}
		tokens := f.tokens(t)
		start := time.Now()
		get := func(at time.Duration, want string, waits time.Duration) {
			t.Helper()
			pass(time.Until(start.Add(at)))
			asked := time.Now()
			got, err := tokens.get(t.Context())
			if err != nil || got.AccessToken != want || time.Since(asked) != waits {
				t.Errorf("after %s: %+v, %v after %s, want %s after %s", at, got, err, time.Since(asked), want, waits)
			}
			synctest.Wait()
		}
		get(0, "1", time.Second)
		get(58*time.Minute, "1", 0)
		get(59*time.Minute+30*time.Second, "1", 0) // a renewal begins
		get(59*time.Minute+32*time.Second, "2", 0)
		get(3*time.Hour, "3", time.Second) // over: it has to wait
		if f.asked != 3 {
			t.Errorf("%d questions", f.asked)
		}
	})
}

// TestFailedRenewal holds that the old token serves until its end, and that the token server is not asked at every send.
func TestFailedRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{give: func(nth int) (int, string) {
			if nth == 1 {
				return hour(nth)
			}
			return http.StatusServiceUnavailable, ""
		}}
		tokens := f.tokens(t)
		if _, err := tokens.get(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(59 * time.Minute)
		for range 59 {
			pass(time.Second)
			if got, err := tokens.get(t.Context()); err != nil || got.AccessToken != "1" {
				t.Fatalf("%+v, %v", got, err)
			}
			synctest.Wait()
		}
		if f.asked < 5 || f.asked > 15 {
			t.Errorf("%d questions in a minute", f.asked)
		}
		pass(2 * time.Second)
		if got, err := tokens.get(t.Context()); err == nil {
			t.Errorf("a token that is over: %+v", got)
		}
	})
}

// TestShortToken holds that a token of seconds is used for most of them.
func TestShortToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{give: func(nth int) (int, string) { return 200, fmt.Sprintf(`{"access_token":"%d","expires_in":5}`, nth) }}
		tokens := f.tokens(t)
		for range 8 {
			if got := must(tokens.get(t.Context())); got.AccessToken != "1" {
				t.Fatal(got.AccessToken)
			}
			pass(500 * time.Millisecond)
		}
	})
}

// TestWaitForToken holds that a send waits no longer than it may itself, that it takes no other along, and that a failure is
// told to all that waited for it.
func TestWaitForToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{after: 10 * time.Second, give: hour}
		tokens := f.tokens(t)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var patient sync.WaitGroup
		patient.Go(func() {
			pass(time.Millisecond)
			if got, err := tokens.get(t.Context()); err != nil || got.AccessToken != "1" {
				t.Errorf("%+v, %v", got, err)
			}
		})
		if _, err := tokens.get(short); textOf(err) != "no token from the token server in time" {
			t.Error(err)
		}
		patient.Wait()
		if f.asked != 1 {
			t.Errorf("%d questions", f.asked)
		}
		tokens.held, f.after = nil, time.Minute
		start := time.Now()
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if _, err := tokens.get(t.Context()); textOf(err) != "no token: no answer of the token server in time" {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if f.asked != 2 || time.Since(start) != 20*time.Second {
			t.Errorf("%d questions after %s", f.asked, time.Since(start))
		}
	})
}
