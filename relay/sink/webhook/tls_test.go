package webhook

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// TestTLS holds that a receiver with a certificate of our own authority is reached, under its own name or another.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	for name, serverName := range map[string]string{"127.0.0.1": "", "billing.internal": "billing.internal"} {
		to := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(name, time.Hour)}}, func(http.ResponseWriter, *http.Request) {})
		s := newSink(t, to, func(c *Config) { c.TLS = &TLS{CAFile: ca.file, ServerName: serverName} })
		if o := s.Send(t.Context(), newMessage("a")); o.Kind != relay.KindDone {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// TestOldTLS holds that TLS before 1.2 is not spoken, whatever the defaults of Go or of its environment are.
func TestOldTLS(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"the system's roots": nil, "an authority of ours": func(c *Config) { c.TLS = &TLS{CAFile: newAuthority(t).file} },
	} {
		if got := newSink(t, "https://h", change).dialer.tls.MinVersion; got != tls.VersionTLS12 {
			t.Errorf("%s: from %s on", name, tls.VersionName(got))
		}
	}
}

// TestClientCertificate holds that we show our certificate where one is wanted, and the new one once its file was replaced.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	var names []string
	to := serveTLS(t, &tls.Config{
		Certificates: []tls.Certificate{ca.issue("127.0.0.1", time.Hour)},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: ca.pool(),
	}, func(_ http.ResponseWriter, r *http.Request) {
		names = append(names, r.TLS.PeerCertificates[0].Subject.CommonName)
	})
	certFile, keyFile := ca.files(dir, ca.issue("first", time.Hour))
	s := newSink(t, to, func(c *Config) {
		c.FreshConnections, c.TLS = true, &TLS{CAFile: ca.file, CertFile: certFile, KeyFile: keyFile}
	})
	for _, name := range []string{"first", "second"} {
		ca.files(dir, ca.issue(name, time.Hour))
		if o := s.Send(t.Context(), newMessage("a")); o.Kind != relay.KindDone {
			t.Fatalf("%+v", o)
		}
	}
	if got := strings.Join(names, " "); got != "first second" {
		t.Error(got)
	}
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	wantKind(t, s.Send(t.Context(), newMessage("a")), relay.KindUnsent, classTLS, "cannot read "+keyFile)
}

// TestTokenServerOverTLS holds that the token server is reached by the same authority, and not by the receiver's name.
func TestTokenServerOverTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	tokens := newTokenServer(t)
	receiver := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{ca.issue("billing.internal", time.Hour)}}, func(http.ResponseWriter, *http.Request) {})
	for name, kind := range map[string]relay.Kind{"localhost": relay.KindDone, "billing.internal": relay.KindUnsent} {
		server := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(name, time.Hour)}}, tokens.serve)
		s := newSink(t, receiver, func(c *Config) {
			c.TLS, c.OAuth2 = &TLS{CAFile: ca.file, ServerName: "billing.internal"}, tokens.config()
			c.OAuth2.TokenURL = strings.Replace(server, "127.0.0.1", "localhost", 1)
		})
		if o := s.Send(t.Context(), newMessage("a")); o.Kind != kind || kind == relay.KindUnsent && (o.Class != classTLS || !strings.Contains(o.Err, "no token")) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// TestTLSFiles holds that a file that cannot serve is a mistake of the configuration that names it.
func TestTLSFiles(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	certFile, keyFile := ca.files(dir, ca.issue("me", time.Hour))
	junk, gone := filepath.Join(dir, "junk"), filepath.Join(dir, "gone")
	if err := os.WriteFile(junk, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, files := range map[string]TLS{
		"webhook.tls.ca_file: cannot read " + gone + ": no such file or directory":   {CAFile: gone},
		"webhook.tls.ca_file: " + junk + " holds no certificate in PEM":              {CAFile: junk},
		"webhook.tls.cert_file: cannot read " + gone + ": no such file or directory": {CertFile: gone, KeyFile: keyFile},
		"webhook.tls.key_file: cannot read " + gone + ": no such file or directory":  {CertFile: certFile, KeyFile: gone},
		"webhook.tls.cert_file: " + certFile + " and " + junk + " are no":            {CertFile: certFile, KeyFile: junk},
	} {
		_, err := New(Config{URL: "https://h", TLS: &files}, slog.New(slog.DiscardHandler))
		if got := textOf(err); !strings.HasPrefix(got, want) || strings.Contains(got, canary) || strings.Contains(got, "\n") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
