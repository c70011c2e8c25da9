package webhook

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/outboxd/outboxd/relay"
)

// tokenServer gives tokens: canary-token-1, canary-token-2 and so on.
type tokenServer struct {
	url     string
	given   atomic.Int64
	life    atomic.Int64 // of each, in seconds; 0: it does not say
	mu      sync.Mutex
	last    *http.Request
	form    map[string][]string
	answers func(w http.ResponseWriter) bool // true: it has answered in another way
}

func newTokenServer(t *testing.T) *tokenServer {
	t.Helper()
	s := &tokenServer{}
	s.url = serve(t, s.serve)
	return s
}

func (s *tokenServer) serve(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.mu.Lock()
	s.last, s.form = r, r.PostForm
	s.mu.Unlock()
	if s.answers != nil && s.answers(w) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	expires := ""
	if life := s.life.Load(); life > 0 {
		expires = fmt.Sprintf(`,"expires_in":%d`, life)
	}
	_, _ = fmt.Fprintf(w, `{"access_token":"canary-token-%d","token_type":"bearer"%s}`, s.given.Add(1), expires)
}

func (s *tokenServer) config() *OAuth2 {
	return &OAuth2{TokenURL: s.url + "/token?canary", ClientID: "me", ClientSecret: is("canary-client")}
}

// authorizations are the headers of that name that came.
func authorizations(w *wire) []string {
	requests, _, _ := w.seen()
	all := make([]string, len(requests))
	for i, r := range requests {
		all[i] = r.Header.Get(headerAuthorization)
	}
	return all
}

// TestTokenRequest holds what the token server is asked.
func TestTokenRequest(t *testing.T) {
	t.Parallel()
	for _, inBody := range []bool{false, true} {
		server, w := newTokenServer(t), newWire(t, reply(ok))
		s := newSink(t, w.url(), func(c *Config) {
			c.OAuth2 = server.config()
			c.OAuth2.Scopes, c.OAuth2.Params, c.OAuth2.InBody = []string{"charge", "refund"}, map[string]string{"audience": "billing"}, inBody
		})
		if o := s.Send(t.Context(), newMessage("a")); o.Kind != relay.KindDone {
			t.Fatalf("%+v", o)
		}
		if got := authorizations(w); got[0] != "Bearer canary-token-1" {
			t.Error(got)
		}
		want := map[string][]string{"grant_type": {"client_credentials"}, "scope": {"charge refund"}, "audience": {"billing"}}
		if inBody {
			want["client_id"], want["client_secret"] = []string{"me"}, []string{"canary-client"}
		}
		user, password, basic := server.last.BasicAuth()
		if fmt.Sprint(server.form) != fmt.Sprint(want) || basic == inBody || basic && (user != "me" || password != "canary-client") {
			t.Errorf("in body %t: %v, %s %s", inBody, server.form, user, password)
		}
	}
}

// TestOneToken holds that all sends share a token, and that many that wait for the first cause one question.
func TestOneToken(t *testing.T) {
	t.Parallel()
	server, w := newTokenServer(t), newWire(t, reply(ok))
	var waiting sync.WaitGroup
	const sends = 20
	waiting.Add(sends)
	server.answers = func(http.ResponseWriter) bool {
		waiting.Wait() // until all sends are under way
		return false
	}
	s := newSink(t, w.url(), func(c *Config) { c.OAuth2 = server.config() })
	var all sync.WaitGroup
	for range sends {
		all.Go(func() {
			waiting.Done()
			if o := s.Send(t.Context(), newMessage("a")); o.Kind != relay.KindDone {
				t.Errorf("%+v", o)
			}
		})
	}
	all.Wait()
	if o := s.Send(t.Context(), newMessage("a")); o.Kind != relay.KindDone || server.given.Load() != 1 {
		t.Errorf("%+v with %d tokens", o, server.given.Load())
	}
}

// TestRefusedToken holds that a 401 drops the token that it was about, and no other, so that the retry has a new one.
func TestRefusedToken(t *testing.T) {
	t.Parallel()
	server := newTokenServer(t)
	w := newWire(t, nil)
	w.script = func(c net.Conn, nth int) {
		if all := authorizations(w); all[nth-1] == "Bearer canary-token-1" {
			reply("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")(c, nth)
			return
		}
		reply("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")(c, nth)
	}
	s := newSink(t, w.url(), func(c *Config) { c.OAuth2 = server.config() })
	for range 4 {
		wantKind(t, s.Send(t.Context(), newMessage("a")), relay.KindRetry, classAuth)
	}
	if got := strings.Join(authorizations(w), ", "); got != "Bearer canary-token-1, Bearer canary-token-2, Bearer canary-token-2, Bearer canary-token-2" {
		t.Error(got)
	}
	old := &token{Token: must(s.credentials.tokens.get(t.Context())).Token}
	s.credentials.tokens.drop(&token{Token: must(s.credentials.tokens.ask(t.Context())).Token})
	if now := must(s.credentials.tokens.get(t.Context())); now.AccessToken != old.AccessToken {
		t.Errorf("%s was dropped for another one", old.AccessToken)
	}
}

// TestNoToken holds what is said where the token server gives none, without its own words, and that nothing goes out.
func TestNoToken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status      int
		contentType string
		body        string
		class, want string
	}{
		"error of the standard": {400, "application/json", `{"error":"invalid_scope","error_description":"canary"}`, classAuth, "no token: the token server answered HTTP 400, invalid_scope"},
		"error of its own":      {403, "application/json", `{"error":"canary"}`, classAuth, "no token: the token server answered HTTP 403"},
		"error in a form":       {401, "text/plain", `error=invalid_client&error_description=canary`, classAuth, "no token: the token server answered HTTP 401, invalid_client"},
		"error with a 200":      {200, "application/json", `{"error":"invalid_grant"}`, classAuth, "no token: the token server answered HTTP 200, invalid_grant"},
		"not now":               {503, "text/html", `canary`, class5xx, "no token: the token server answered HTTP 503"},
		"too many":              {429, "text/html", `canary`, classAuth, "no token: the token server answered HTTP 429"},
		"redirect":              {307, "text/html", `canary`, class3xx, "no token: the token server answered HTTP 307"},
		"no JSON":               {200, "application/json", `canary`, classOther, "no token: the token server's answer holds none"},
		"empty":                 {200, "application/json", `{"access_token":""}`, classOther, "no token: the token server's answer holds none"},
		"one that is too long":  {200, "application/json", `{"access_token":"canary","pad":"` + strings.Repeat("x", maxTokenBytes) + `"}`, classOther, "no token: the token server's answer holds none"},
		"endless":               {200, "application/json", `{"access_token":"canary` + strings.Repeat("x", 2*maxTokenBytes), classOther, "no token: the token server's answer holds none"},
		"a line break in it":    {200, "application/json", `{"access_token":"canary\r\nX: y"}`, classAuth, "the secret of header Authorization has a control character in it, such as a line break"},
	} {
		server, w := newTokenServer(t), newWire(t, reply(ok))
		asked := 0
		server.answers = func(w http.ResponseWriter) bool {
			asked++
			w.Header().Set("Content-Type", c.contentType)
			w.Header().Set(headerLocation, server.url)
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
			return true
		}
		s := newSink(t, w.url(), func(cfg *Config) { cfg.OAuth2 = server.config() })
		o := s.Send(t.Context(), newMessage("a"))
		if o != relay.Unsent(c.class, c.want) || asked != 1 || w.count() != 0 {
			t.Errorf("%s: %+v after %d questions and %d requests", name, o, asked, w.count())
		}
	}
}
