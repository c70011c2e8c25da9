package receive

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	oldSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
	newSecret = "whsec_MTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4"
)

// signed are the headers that the public library of Standard Webhooks makes.
func signed(t *testing.T, secret, id string, at time.Time, body string) []string {
	t.Helper()
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := signer.Sign(id, at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return []string{"webhook-id", id, "webhook-timestamp", fmt.Sprint(at.Unix()), "webhook-signature", "v1a,xyz " + signature}
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	secrets, err := ParseSecrets(oldSecret + "\n" + newSecret + "\n")
	if err != nil {
		t.Fatal(err)
	}
	r := newTrial(t, Options{Secrets: secrets})
	const other = "whsec_bm90IHRoZSBzZWNyZXQgdGhhdCB3ZSBrbm93"
	now := time.Now()
	for name, c := range map[string]struct {
		headers []string
		status  int
		words   string
	}{
		"old":       {signed(t, oldSecret, "a", now, "{}"), 200, "effect"},
		"new":       {signed(t, newSecret, "a", now, "{}"), 200, "effect"},
		"4 minutes": {signed(t, newSecret, "a", now.Add(-4*time.Minute), "{}"), 200, "effect"},
		"none":      {nil, 401, "webhook-id or webhook-timestamp is missing"},
		"no time":   {append(signed(t, newSecret, "a", now, "{}"), "webhook-timestamp", "now"), 401, "no number"},
		"another":   {signed(t, other, "a", now, "{}"), 401, "no webhook-signature fits"},
		"body":      {signed(t, oldSecret, "a", now, "{ }"), 401, "no webhook-signature fits"},
		"id":        {append(signed(t, oldSecret, "a", now, "{}"), "webhook-id", "b"), 401, "no webhook-signature fits"},
		"too old":   {signed(t, oldSecret, "a", now.Add(-6*time.Minute), "{}"), 401, "more than 5m0s away"},
		"too new":   {signed(t, oldSecret, "a", now.Add(6*time.Minute), "{}"), 401, "more than 5m0s away"},
	} {
		t.Run(name, func(t *testing.T) {
			if g := r.post("", name, "{}", c.headers...); g.status != c.status || !strings.Contains(g.body, c.words) {
				t.Errorf("%+v", g)
			}
		})
	}
	if got := r.Tally(); got.Effects != 3 || got.BadSignatures != 7 || got.Refused != 7 {
		t.Errorf("%+v", got)
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                        "there is no secret in it",
		"\n":                      "there is no secret in it",
		"whsec_hunter2":           "secret 1 is not whsec_",
		oldSecret + " whsec_aGk=": "secret 2 is not whsec_",
	} {
		if _, err := ParseSecrets(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestBearer(t *testing.T) {
	t.Parallel()
	r := newTrial(t, Options{Bearer: "s3cret"})
	for given, want := range map[string]int{"Bearer s3cret": 200, "Bearer s3cre": 401, "Bearer s3cretx": 401, "s3cret": 401, "Basic s3cret": 401} {
		if g := r.post("", "a", "{}", "Authorization", given); g.status != want || strings.Contains(g.body, "s3cret") {
			t.Errorf("%s: %+v", given, g)
		}
	}
	if strings.Contains(r.lines.String(), "s3cret") {
		t.Errorf("a line has the token: %s", r.lines.String())
	}
	for token, want := range map[string]int{"s3cret": 204, "other": 401} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodOptions, "/", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		if w.Code != want {
			t.Errorf("OPTIONS with %s: %d, want %d", token, w.Code, want)
		}
	}
}
