package demo

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newTestReceiver(t *testing.T, forgetful bool) *receiver {
	t.Helper()
	db, err := sqlite.Open(dialect.Options{URL: "sqlite:" + filepath.Join(t.TempDir(), "shop.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	tables := tables{pool: db.Pool(), engine: dialect.SQLite}
	if err := tables.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := newReceiver(t.Context(), tables, forgetful)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return r
}

// post charges an order under a key.
func post(t *testing.T, r *receiver, key, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, r.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestReceiver holds that the receiver does the work once for each key, and keeps its answers, refusals too.
func TestReceiver(t *testing.T) {
	t.Parallel()
	r := newTestReceiver(t, false)
	const euros, francs = `{"order":101,"amount":"1.00","currency":"EUR"}`, `{"order":107,"amount":"1.00","currency":"CHF"}`
	for _, step := range []struct {
		key, body, answer string
		status            int
	}{
		{"a", euros, "receipt-101", 200},
		{"a", euros, "receipt-101", 200},
		{"b", francs, "unknown currency CHF", 422},
		{"b", francs, "unknown currency CHF", 422},
	} {
		if status, answer := post(t, r, step.key, step.body); status != step.status || answer != step.answer {
			t.Errorf("%+v: %d %s", step, status, answer)
		}
	}
	r.takeFrancs()
	if status, _ := post(t, r, "b", francs); status != 422 {
		t.Errorf("the old key has a new answer: %d", status)
	}
	if status, answer := post(t, r, "c", francs); status != 200 || answer != "receipt-107" {
		t.Errorf("the new key: %d %s", status, answer)
	}
	if n, err := r.tables.count(t.Context(), "SELECT count(*) FROM {charges}"); n != 2 || err != nil {
		t.Errorf("%d charges, %v", n, err)
	}
	if status, _ := post(t, r, "d", "no order"); status != 400 {
		t.Errorf("no order: %d", status)
	}
}

// TestForgetfulReceiver holds that without its memory the receiver does the work twice.
func TestForgetfulReceiver(t *testing.T) {
	t.Parallel()
	r := newTestReceiver(t, true)
	for range 2 {
		post(t, r, "a", `{"order":101,"amount":"1.00","currency":"EUR"}`)
	}
	if n, err := r.tables.count(t.Context(), "SELECT count(*) FROM {charges}"); n != 2 || err != nil {
		t.Errorf("%d charges, %v", n, err)
	}
}
