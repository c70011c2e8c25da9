package receive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// trial is a receiver behind a server.
type trial struct {
	*Receiver
	t     *testing.T
	url   string
	lines *safeBuffer
}

type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func newTrial(t *testing.T, o Options) *trial {
	t.Helper()
	lines := &safeBuffer{}
	o.Out = lines
	if o.KeyHeader == "" {
		o.KeyHeader = "Idempotency-Key"
	}
	if o.MaxKeys == 0 {
		o.MaxKeys, o.Remember = 1000, time.Hour
	}
	r := New(o)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return &trial{Receiver: r, t: t, url: server.URL, lines: lines}
}

// got is what a sender learns.
type got struct {
	status int // 0: there was no answer
	header http.Header
	body   string
}

func (r *trial) send(ctx context.Context, query, key, body string, header ...string) (got, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/charges"+query, strings.NewReader(body))
	if err != nil {
		r.t.Error(err)
	}
	req.GetBody = nil // net/http would send it twice
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return got{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return got{resp.StatusCode, resp.Header, string(text)}, err
}

// post is a send whose error counts as no answer.
func (r *trial) post(query, key, body string, header ...string) got {
	r.t.Helper()
	g, err := r.send(r.t.Context(), query, key, body, header...)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		r.t.Errorf("%s: %s", query, err)
	}
	return g
}

func (r *trial) page() string {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.url, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// until waits for what comes soon.
func (r *trial) until(what string, there func() bool) {
	r.t.Helper()
	deadline := time.After(30 * time.Second)
	for !there() {
		select {
		case <-deadline:
			r.t.Fatalf("%s: not after 30 s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
