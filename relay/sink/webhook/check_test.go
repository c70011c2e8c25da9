package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// tell runs Test and gives what it told, a line a step.
func tell(t *testing.T, s *Sink) string {
	t.Helper()
	var lines []string
	s.Test(t.Context(), func(step, words string, err error) {
		lines = append(lines, fmt.Sprintf("%s: %s %v", step, words, err))
	})
	return strings.Join(lines, "\n")
}

// TestDestinationTest holds that it goes as far as OPTIONS, and that no POST reaches the destination.
func TestDestinationTest(t *testing.T) {
	t.Parallel()
	var came []string
	ca, tokens := newAuthority(t), newTokenServer(t)
	to := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{ca.issue("127.0.0.1", time.Hour)}}, func(w http.ResponseWriter, r *http.Request) {
		came = append(came, r.Method+" "+r.Header.Get("Authorization")+" "+r.Header.Get("X-Tenant"))
		w.WriteHeader(http.StatusMethodNotAllowed)
	})
	s := newSink(t, to, func(c *Config) {
		c.TLS, c.OAuth2, c.Headers = &TLS{CAFile: ca.file}, tokens.config(), map[string]Source{"X-Tenant": is("acme")}
	})
	got := tell(t, s)
	for _, line := range []string{
		"secrets: all can be read <nil>\naddress: 127.0.0.1 <nil>\nconnection: to 127.0.0.1:", "\ntls: TLS 1.3, certificate of \"127.0.0.1\" by \"test\", good for 0 days <nil>",
		"\ntoken: the token server gave one <nil>\noptions: HTTP 405 Method Not Allowed <nil>",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("%s\nhas no %s", got, line)
		}
	}
	if strings.Join(came, "; ") != "OPTIONS Bearer canary-token-1 acme" || strings.Contains(got, canary) {
		t.Errorf("%q\n%s", came, got)
	}
}

// TestDestinationTestFails holds that it stops at the step that does not go well, and says why in one line.
func TestDestinationTestFails(t *testing.T) {
	t.Parallel()
	gone := false
	for name, c := range map[string]struct {
		to     string
		change func(*Config)
		want   string // of the last line
	}{
		"secret":           {"http://h", func(c *Config) { c.Bearer = unlessGone(&gone) }, "secrets:  webhook.bearer: cannot read ./secret"},
		"address":          {"http://host.invalid", nil, "address:  lookup host.invalid"},
		"connection":       {"http://" + closed(t), nil, "connection:  dial tcp"},
		"in other letters": {"http://bücher.invalid", nil, "address:  lookup xn--bcher-kva.invalid"},
		"tls":              {serveTLS(t, nil, nil), nil, "tls:  TLS handshake: tls: failed to verify certificate"},
		"token": {serve(t, nil), func(c *Config) {
			c.OAuth2 = &OAuth2{TokenURL: serve(t, refuse), ClientID: "me", ClientSecret: is("canary")}
		}, "token:  no token: the token server answered HTTP 401"},
		"options":   {serve(t, refuse), func(c *Config) { c.Bearer = is("canary") }, "options:  HTTP 401 Unauthorized: it does not take our credentials"},
		"no answer": {"http://" + listen(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }), nil, "options:  the connection ended before an answer came"},
	} {
		s := newSink(t, c.to, c.change)
		gone = true
		got := tell(t, s)
		gone = false
		last := got[strings.LastIndex(got, "\n")+1:]
		if !strings.HasPrefix(last, c.want) || strings.Contains(got, canary) {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}

// TestDestinationTestPublicOnly holds that it connects under the same rule as a send.
func TestDestinationTestPublicOnly(t *testing.T) {
	t.Parallel()
	got := tell(t, newPublicSink(t, serve(t, nil)))
	if last := got[strings.LastIndex(got, "\n")+1:]; !strings.HasPrefix(last, "connection:  dial tcp 127.0.0.1") || !strings.Contains(last, "public_only refuses") {
		t.Error(got)
	}
}

// TestLookedUpAlike holds that Test looks for the name that a send looks for, whatever letters it has.
func TestLookedUpAlike(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"https://bücher.example/in": "xn--bcher-kva.example:443", "http://BÜCHER.example:8080": "xn--bcher-kva.example:8080",
		"http://127.0.0.1": "127.0.0.1:80", "https://[::1]": "[::1]:443",
	} {
		s := newSink(t, to, nil)
		var dialled string
		s.transport.DialContext = counting(func(_ context.Context, _, address string) (net.Conn, error) {
			dialled = address
			return nil, errNever
		})
		s.transport.DialTLSContext = s.transport.DialContext
		wantKind(t, s.Send(t.Context(), newMessage("a")), relay.KindUnsent, classOther)
		if got := s.dialled(t.Context()); got != want || dialled != want {
			t.Errorf("%s: Test takes it for %s, a send for %s, want %s", to, got, dialled, want)
		}
	}
}

func unlessGone(gone *bool) Source {
	return func() (string, error) {
		if *gone {
			return "", errors.New("cannot read ./secret")
		}
		return "hunter2", nil
	}
}

// closed is an address where nobody listens.
func closed(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func refuse(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
