package webhook

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/relay"
)

// TestSecretsOfAURL holds what of the destination's own URL no output shows, in any of its parts and forms.
func TestSecretsOfAURL(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"":                                       "",
		"/":                                      "/",
		"/commands":                              "/commands",
		"/api/v1/orders/":                        "/api/v1/orders/",
		"/payment-intents":                       "/payment-intents",
		"/commands?shop=1":                       "/commands?shop=1",
		"/commands?token=hunter2":                "/commands?token=<secret>",
		"/commands?hunter2":                      "/commands?<secret>",
		"/commands?a=hunter2;b&c=pa%2Fss%2fword": "/commands?a=<secret>&c=<secret>",
		"/in/T0AB/":                              "<secret>/",
		"/a/b/c/d":                               "<secret>",
		"/hunter-two2":                           "<secret>",
		"/" + strings.Repeat("x", 17):            "<secret>",
	} {
		known := &secrets{}
		known.addURL(must(url.Parse("https://h" + to)))
		if got := known.Hide(to); got != want {
			t.Errorf("%s: %s, want %s", to, got, want)
		}
	}
	known := &secrets{}
	known.addURL(must(url.Parse("https://h/in/T0AB/?c=pa%2Fss%2fword")))
	const parts = `pa/ss/word pa\/ss\/word pa%2Fss%2Fword pa%252Fss%252fword \/in\/T0AB %2Fin%2FT0AB T0AB in`
	if got := known.Hide(parts); got != strings.Repeat("<secret> ", 7)+"in" {
		t.Error(got)
	}
}

// TestSecretOfAScheme holds that a credential is masked where it stands without its scheme, too.
func TestSecretOfAScheme(t *testing.T) {
	t.Parallel()
	known := &secrets{}
	known.add("Bearer hunter2")
	if got := known.Hide("Bearer hunter2, hunter2, Bearer"); got != "<secret>, <secret>, Bearer" {
		t.Error(got)
	}
}

// TestSecretParams holds that of what a token server is told beside only long values are secret: short ones are words.
func TestSecretParams(t *testing.T) {
	t.Parallel()
	known := &secrets{}
	known.addParams(map[string]string{"audience": "billing", "password": "hunter22"})
	if got := known.Hide("billing hunter22"); got != "billing <secret>" {
		t.Error(got)
	}
}

// TestRedirectToItself holds that a redirect to the destination's own path says where it leads, and not what is secret of it.
func TestRedirectToItself(t *testing.T) {
	t.Parallel()
	const before = "HTTP 308 Permanent Redirect: redirects are not followed; it leads to /"
	near, far := "/"+strings.Repeat("x", 250), "/"+strings.Repeat("x", maxErrBytes-len(before)-len("hun"))
	for path, c := range map[string]struct{ location, want string }{
		"/services/T0/hunter2x": {"/services/T0/hunter2x/", "it leads to <secret>/"},
		"/in?t=hunter2x":        {"https://h/in/hunter2x/?t=hunter2x", "it leads to https://h/in/<secret>/"},
		"/commands":             {"/commands/", "it leads to /commands/"},
		"/in?near=hunter2x":     {near + "hunter2x", "x<secret>"},
		"/in?far=hunter2x":      {far + "hunter2x", "x<se"},
	} {
		w := newWire(t, reply("HTTP/1.1 308 There\r\nLocation: "+c.location+"\r\nContent-Length: 0\r\n\r\n"))
		s := newSink(t, strings.TrimSuffix(w.url(), "/in")+path, nil)
		o := s.Send(t.Context(), newMessage("a"))
		wantKind(t, o, relay.KindRetry, class3xx, "redirects are not followed")
		if !strings.HasSuffix(o.Err, c.want) || strings.Contains(o.Err, "hun") || len(o.Err) > maxErrBytes {
			t.Errorf("%s: %s", path, o.Err)
		}
	}
}

// TestPageThatEchoesTheURL holds that such a page is kept without what is secret of it.
func TestPageThatEchoesTheURL(t *testing.T) {
	t.Parallel()
	to := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, "nothing at %s, that is %s", r.RequestURI, r.URL.Path)
	})
	o := newSink(t, to+"/hooks/T0hunter2?sig=hunter2%2Fx", nil).Send(t.Context(), newMessage("a"))
	if o.Answer != "nothing at <secret>?sig=<secret>, that is <secret>" {
		t.Error(o.Answer)
	}
}

// TestAnswerThatEndsInASecret holds that of a secret in the middle of which an answer ends nothing is kept, and all that
// came before it.
func TestAnswerThatEndsInASecret(t *testing.T) {
	t.Parallel()
	const secret = "hun2xhun" // its end is its start
	for n := range len(secret) + 1 {
		for _, status := range []int{200, 500} {
			to := newWire(t, func(c net.Conn, _ int) {
				reply(fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: 1000\r\n\r\nstart %s", status, secret+secret[:n]))(c, 0)
				_ = c.Close()
			}).url()
			o := newSink(t, to, func(c *Config) { c.Bearer = is(secret) }).Send(t.Context(), newMessage("a"))
			want := "start <secret>"
			if n == len(secret) {
				want += "<secret>"
			}
			if got := o.Result + o.Answer; got != want {
				t.Errorf("%d bytes of it, status %d: %q", n, status, got)
			}
		}
	}
}

// TestLongSecrets holds that no half of a secret comes into sight where masks are much shorter than what they hide, so that
// the end of what was read of an answer is kept.
func TestLongSecrets(t *testing.T) {
	t.Parallel()
	secret := "hunter2x" + strings.Repeat("x", 1500)
	for _, times := range []int{10, 1 + maxAnswerBytes/len(secret)} {
		to := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat(secret, times)) })
		o := newSink(t, to, func(c *Config) { c.Bearer = is(secret) }).Send(t.Context(), newMessage("a"))
		got := o.Result + o.Answer
		if got == "" || strings.Trim(got, "<secrt>") != "" { // of the last mask only a part may be there
			t.Errorf("%d times: %.300q and %.300q", times, o.Result, o.Answer)
		}
	}
}
