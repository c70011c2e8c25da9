package webhook

import (
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/outboxd/outboxd/relay"
)

// TestCredentials holds what a request proves by that it is ours, and that its secrets are read anew for each send.
func TestCredentials(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(c *Config, secret Source)
		header string
		want   func(secret string) string
	}{
		"static header": {func(c *Config, secret Source) { c.Headers = map[string]Source{"x-api-key": secret} }, "X-Api-Key", func(s string) string { return s }},
		"static authorization": {
			func(c *Config, secret Source) { c.Headers = map[string]Source{"Authorization": secret} }, "Authorization", func(s string) string { return s },
		},
		"bearer": {func(c *Config, secret Source) { c.Bearer = secret }, "Authorization", func(s string) string { return "Bearer " + s }},
		"basic": {
			func(c *Config, secret Source) { c.Basic = &Basic{"me", secret} }, "Authorization",
			func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+s)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var secret atomic.Value
			secret.Store("first")
			w := newWire(t, reply(ok))
			s := newSink(t, w.url(), func(cfg *Config) {
				c.change(cfg, func() (string, error) {
					if secret.Load() == "gone" {
						return "", errors.New("cannot read ./secret:\nno such file or directory")
					}
					return secret.Load().(string), nil
				})
			})
			for _, value := range []string{"first", "second: ä", "third"} {
				secret.Store(value)
				m := newMessage("a")
				m.Headers = []relay.Header{{Name: c.header, Value: "theirs"}}
				if o := s.Send(t.Context(), m); o.Kind != relay.KindDone {
					t.Fatalf("%+v", o)
				}
				requests, _, _ := w.seen()
				if got := requests[len(requests)-1].Header.Values(c.header); len(got) != 1 || got[0] != c.want(value) {
					t.Errorf("%s is %q, want %q", c.header, got, c.want(value))
				}
			}
			for value, words := range map[string]string{"gone": "cannot read ./secret: no such file or directory", "hunter2\nX: y": "control character", "": "is empty"} {
				if value != "gone" && name == "basic" {
					continue // base64 carries all
				}
				secret.Store(value)
				o := s.Send(t.Context(), newMessage("a"))
				if wantKind(t, o, relay.KindUnsent, classAuth, words); strings.Contains(o.Err, "hunter2") {
					t.Errorf("it shows the secret: %s", o.Err)
				}
			}
			if w.count() != 3 {
				t.Errorf("%d requests", w.count())
			}
		})
	}
}

// TestMissingSecrets holds that a secret that is not there is found at the start.
func TestMissingSecrets(t *testing.T) {
	t.Parallel()
	gone := func() (string, error) { return "", errors.New("cannot read ./secret: no such file or directory") }
	for setting, change := range map[string]func(*Config){
		"headers.X-Api-Key":    func(c *Config) { c.Headers = map[string]Source{"X-Api-Key": gone} },
		"bearer":               func(c *Config) { c.Bearer = gone },
		"basic.password":       func(c *Config) { c.Basic = &Basic{"me", gone} },
		"oauth2.client_secret": func(c *Config) { c.OAuth2 = &OAuth2{TokenURL: "http://h", ClientID: "me", ClientSecret: gone} },
		"secrets":              func(c *Config) { c.Secrets = gone },
	} {
		cfg := Config{URL: "http://h"}
		change(&cfg)
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s: where it cannot be read, the configuration is still a good one: %v", setting, err)
		}
		_, err := New(cfg, slog.New(slog.DiscardHandler))
		if want := "webhook." + setting + ": cannot read ./secret: no such file or directory"; textOf(err) != want {
			t.Errorf("%s: %v, want %s", setting, err, want)
		}
	}
}

// TestEcho holds that what a receiver repeats of our secrets is in no text, whatever clothes it wears.
func TestEcho(t *testing.T) {
	t.Parallel()
	const password = `pa"ss/wör d`
	token := newTokenServer(t)
	token.answers = func(w http.ResponseWriter) bool {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"canary-token"}`)
		return true
	}
	signing := key('s', 24)
	for name, c := range map[string]struct {
		change func(*Config)
		secret []string
	}{
		"bearer": {func(c *Config) { c.Bearer = is("canary-bearer") }, []string{"canary-bearer"}},
		"basic":  {func(c *Config) { c.Basic = &Basic{"me", is(password)} }, []string{password, base64.StdEncoding.EncodeToString([]byte("me:" + password)), `pa\"ss/wör d`, `pa\"ss\/wör d`, "pa%22ss%2Fw%C3%B6r+d"}},
		"static": {func(c *Config) {
			c.Headers = map[string]Source{"X-Key": is("canary-key"), "Authorization": is("Token canary-auth")}
		}, []string{"canary-key", "canary-auth"}},
		"signing": {func(c *Config) { c.Secrets = is(signing + " " + key('t', 24)) }, []string{signing, key('t', 24)}},
		"query":   {func(c *Config) { c.URL += "/in?sig=canary-query" }, []string{"canary-query"}},
		"path":    {func(c *Config) { c.URL += "/in/canary-2" }, []string{"canary-2"}},
		"params": {func(c *Config) {
			c.OAuth2 = token.config()
			c.OAuth2.Params = map[string]string{"assertion": "canary-assertion"}
		}, []string{"canary-assertion"}},
		"client secret": {func(c *Config) { c.OAuth2 = token.config() }, []string{"canary-client", "canary-token"}},
	} {
		for _, secret := range c.secret {
			for _, status := range []int{200, 201, 302, 422, 500} {
				to := serve(t, func(w http.ResponseWriter, r *http.Request) {
					if status == 302 {
						w.Header().Set(headerLocation, "/"+secret)
					}
					w.WriteHeader(status)
					// It begins just before each place where texts are cut.
					_, _ = io.WriteString(w, strings.Repeat("x", maxResultBytes-5)+secret)
					_, _ = io.WriteString(w, strings.Repeat("y", maxKeptBytes-maxResultBytes-len(secret))+secret+"\n")
					if status != 201 && status != 422 { // which are read to their end
						_, _ = io.WriteString(w, strings.Repeat(secret, 1+2*maxAnswerBytes/len(secret)))
					}
				})
				s := newSink(t, to, func(cfg *Config) { c.change(cfg) })
				o := s.Send(t.Context(), newMessage("a"))
				for _, text := range []string{o.Err, o.Result, o.Answer} {
					if strings.Contains(text, secret[:5]) {
						t.Errorf("%s, status %d: it shows %q in %.400q", name, status, secret, text)
					}
				}
				if !strings.Contains(o.Answer, "<secret>") {
					t.Errorf("%s, status %d: %.100q", name, status, o.Answer)
				}
			}
		}
	}
}
