package receive

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// TestOnceForEachKey holds what any receiver should do.
func TestOnceForEachKey(t *testing.T) {
	t.Parallel()
	r := newTrial(t, Options{})
	first := r.post("", "a", "{}")
	if first.status != 200 || first.header.Get("Content-Type") != "application/json" || first.body != "{\"id\":\"effect-1\"}\n" {
		t.Errorf("%+v", first)
	}
	for _, key := range []string{"a", `"a"`} { // an sf-string is the same key
		again := r.post("", key, "{}")
		if again.status != 200 || again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: %+v", key, again)
		}
	}
	if other := r.post("", "a", "{1}"); other.status != 422 {
		t.Errorf("another body: %+v", other)
	}
	if none := r.post("", "", "{}"); none.status != 400 || !strings.Contains(none.body, "Idempotency-Key") {
		t.Errorf("no key: %+v", none)
	}
	if long := r.post("", strings.Repeat("k", 256), "{}"); long.status != 400 {
		t.Errorf("a long key: %+v", long)
	}
	want := Tally{Requests: 6, Effects: 1, Repeats: 2, Refused: 3}
	if got := r.Tally(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if !r.Did("a") || r.Did("b") {
		t.Error("it does not know its own effects")
	}
}

// TestWhileTheFirstRuns holds that a request in the middle of another one's work is not answered for that.
func TestWhileTheFirstRuns(t *testing.T) {
	t.Parallel()
	r := newTrial(t, Options{})
	first := make(chan got, 1)
	go func() {
		g, _ := r.send(context.Background(), "?latency=1h", "a", "{}")
		first <- g
	}()
	r.until("it runs", func() bool { return strings.Contains(r.page(), "running") })
	if second := r.post("", "a", "{}"); second.status != 409 {
		t.Errorf("%+v", second)
	}
	if other := r.post("", "a", "{1}"); other.status != 422 {
		t.Errorf("%+v", other)
	}
	r.Close()
	if g := <-first; g.status != 200 {
		t.Errorf("%+v", g)
	}
	if third := r.post("", "a", "{}"); third.status != 200 || third.header.Get("Idempotent-Replayed") == "" {
		t.Errorf("%+v", third)
	}
}

// TestManyAtOnce has one key come many times at once.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	r := newTrial(t, Options{})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if g, err := r.send(context.Background(), "", "a", "{}"); err != nil || g.status != 200 && g.status != 409 {
				t.Errorf("%+v, %v", g, err)
			}
		})
	}
	all.Wait()
	if got := r.Tally(); got.Requests != 50 || got.Effects != 1 || got.Doubled != 0 {
		t.Errorf("%+v", got)
	}
}

// TestBehaviour holds what a URL can ask for, and whether the work is done then.
func TestBehaviour(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]struct {
		status, effects int
		header          [2]string
	}{
		"":                               {status: 200, effects: 1},
		"?tenant=7":                      {status: 200, effects: 1},
		"?status=201":                    {status: 201, effects: 1},
		"?status=204":                    {status: 204, effects: 1},
		"?status=307":                    {status: 307, header: [2]string{"Location", "/"}},
		"?status=404":                    {status: 404},
		"?status=503&retry-after=1500ms": {status: 503, header: [2]string{"Retry-After", "2"}},
		"?status=429&retry-after=2s":     {status: 429, header: [2]string{"Retry-After", "2"}},
		"?latency=1ms":                   {status: 200, effects: 1},
		"?cut=before":                    {},
		"?cut=after":                     {effects: 1},
		"?cut=sometimes":                 {status: 400},
		"?hang=yes":                      {status: 400},
		"?status=99":                     {status: 400},
		"?status=ok":                     {status: 400},
		"?latency=5":                     {status: 400},
		"?latency=-5s":                   {status: 400},
		"?retry-after=soon&status=503":   {status: 400},
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			r := newTrial(t, Options{})
			g := r.post(query, "a", "{}")
			if tally := r.Tally(); g.status != want.status || tally.Effects != want.effects || tally.Requests != 1 {
				t.Errorf("%+v, %+v", g, tally)
			}
			if g.status != 0 && g.header.Get(want.header[0]) != want.header[1] {
				t.Errorf("%v, want %v", g.header, want.header)
			}
			again := r.post("", "a", "{}")
			if repeat := again.header.Get("Idempotent-Replayed") != ""; repeat != (want.effects == 1) {
				t.Errorf("%+v: the work was done or not", again)
			}
		})
	}
}

// TestHang has a sender that waits in vain, and leaves.
func TestHang(t *testing.T) {
	t.Parallel()
	for query, effects := range map[string]int{"?hang=before": 0, "?hang=after": 1} {
		r := newTrial(t, Options{})
		ctx, leave := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := r.send(ctx, query, "a", "{}")
			failed <- err
		}()
		r.until("it hangs", func() bool { return strings.Contains(r.lines.String(), "hangs") })
		leave()
		if err := <-failed; err == nil {
			t.Errorf("%s: it was answered", query)
		}
		if got := r.Tally(); got.Effects != effects {
			t.Errorf("%s: %+v", query, got)
		}
	}
}

// TestOnlySome holds that --fail and --fail-rate leave the other requests alone.
func TestOnlySome(t *testing.T) {
	t.Parallel()
	r := newTrial(t, Options{Fail: 2})
	for i, want := range []int{503, 503, 200, 200} {
		if g := r.post("", fmt.Sprint(i), "{}"); g.status != want {
			t.Errorf("request %d: %+v, want %d", i, g, want)
		}
	}
	r = newTrial(t, Options{Fail: 1, Behaviour: Behaviour{Cut: After}})
	for i, want := range []int{0, 200} {
		if g := r.post("", "a", "{}"); g.status != want {
			t.Errorf("request %d: %+v, want %d", i, g, want)
		}
	}
	if got := r.Tally(); got.Effects != 1 || got.Repeats != 1 {
		t.Errorf("%+v", got)
	}
	r = newTrial(t, Options{FailRate: 0.5, Behaviour: Behaviour{Status: 500}})
	failed := 0
	for i := range 200 { // all or none of them: once in 2^199 runs
		if r.post("", fmt.Sprint(i), "{}").status == 500 {
			failed++
		}
	}
	if failed == 0 || failed == 200 {
		t.Errorf("%d of 200 failed", failed)
	}
}

// TestLines holds what is printed of a request: no body, unless it is asked for, and nothing that moves a cursor.
func TestLines(t *testing.T) {
	t.Parallel()
	r := newTrial(t, Options{})
	r.post("", "a\u009b31m", `{"card":"4111"}`, "Outbox-Type", "charge_order", "Outbox-Attempt", "3")
	r.post("?status=500", "b", `{"card":"4111"}`, "ce-type", "com.example.refund")
	fields := strings.Fields(r.lines.String())
	want := strings.Fields("TIME effect 200 a?31m charge_order attempt 3 TIME no-effect 500 b com.example.refund attempt -")
	want[0], want[7] = fields[0], fields[7]
	if strings.Join(fields, " ") != strings.Join(want, " ") {
		t.Errorf("%q", r.lines.String())
	}
	if page := r.page(); strings.Contains(page, "4111") || !strings.Contains(page, "requests 2 · effects 1") || !strings.Contains(page, "a?31m  charge_order  1") {
		t.Error(page)
	}
	r = newTrial(t, Options{Bodies: true})
	r.post("", "a", "{\"card\":\"4111\"}\n")
	if !strings.HasSuffix(r.lines.String(), `"{\"card\":\"4111\"}\n"`+"\n") {
		t.Errorf("%q", r.lines.String())
	}
}

// TestEnough holds that Enough is called with the effect that was counted to, and only then.
func TestEnough(t *testing.T) {
	t.Parallel()
	called := make(chan int, 10)
	r := newTrial(t, Options{Count: 2, Enough: func() { called <- 1 }})
	for _, key := range []string{"a", "a", "b", "c"} {
		if len(called) != 0 && key != "c" {
			t.Errorf("it is enough before %s", key)
		}
		r.post("", key, "{}")
	}
	if len(called) != 1 {
		t.Errorf("%d times", len(called))
	}
}

// TestOtherMethods holds that whoever asks first learns what can be done, and that nothing else has an effect.
func TestOtherMethods(t *testing.T) {
	t.Parallel()
	r := newTrial(t, Options{})
	for method, status := range map[string]int{"OPTIONS": 204, "DELETE": 405, "HEAD": 200} {
		req := httptest.NewRequestWithContext(t.Context(), method, "/", nil)
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		if w.Code != status || method != "HEAD" && !strings.Contains(w.Header().Get("Allow"), "POST") {
			t.Errorf("%s: %d, %v", method, w.Code, w.Header())
		}
	}
	if got := r.Tally(); got.Requests != 0 {
		t.Errorf("%+v", got)
	}
}

// TestLargeBody holds that a body has an end.
func TestLargeBody(t *testing.T) {
	t.Parallel()
	r := newTrial(t, Options{})
	req := httptest.NewRequestWithContext(t.Context(), "POST", "/", io.LimitReader(zeros{}, maxBodyBytes+1))
	req.Header.Set("Idempotency-Key", "a")
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("%d", w.Code)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
