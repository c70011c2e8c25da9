package integration

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// tokenServer gives out tokens, and knows which of them are good.
type tokenServer struct {
	*receiver
	life   time.Duration
	issued atomic.Int64
	least  atomic.Int64 // the oldest that is not revoked
	ends   sync.Map     // when a token ends, by its number; one may be on its way for as long as it lives
}

// newTokenServer wants the client shop with a secret, by Basic, and the scope charge.
func newTokenServer(t *testing.T, ca *authority, life time.Duration) *tokenServer {
	t.Helper()
	s := &tokenServer{life: life}
	s.receiver = newSecureReceiver(t, ca.server(t), func(one *request) reply {
		form, err := url.ParseQuery(one.body)
		basic := "Basic c2hvcDpjbGllbnQtc2VjcmV0" // shop:client-secret
		if err != nil || one.header.Get("Authorization") != basic || form.Get("grant_type") != "client_credentials" ||
			form.Get("scope") != "charge" || form.Get("audience") != "payments" {
			return reply{status: 401, body: `{"error": "invalid_client"}`, header: "Content-Type: application/json\r\n"}
		}
		n := s.issued.Add(1)
		s.ends.Store(n, time.Now().Add(2*s.life))
		return reply{header: "Content-Type: application/json\r\n", body: fmt.Sprintf(
			`{"access_token": "token-%d", "token_type": "Bearer", "expires_in": %d}`, n, int(s.life.Seconds()))}
	})
	return s
}

// revoke makes every token bad that was given out until now.
func (s *tokenServer) revoke() { s.least.Store(s.issued.Load() + 1) }

// guard answers 401 to every request without a good token.
func (s *tokenServer) guard(one *request) reply {
	var n int64
	_, err := fmt.Sscanf(one.header.Get("Authorization"), "Bearer token-%d", &n)
	end, known := s.ends.Load(n)
	if err != nil || !known || n < s.least.Load() || time.Now().After(end.(time.Time)) {
		return reply{status: 401, header: "WWW-Authenticate: Bearer\r\n"}
	}
	return reply{}
}

// oauth2 is the destination's part of the configuration.
func (s *tokenServer) oauth2(ca *authority) string {
	return fmt.Sprintf(`dedupe: 24h, tls: {ca_file: %q}, oauth2: {token_url: %q, client_id: shop, client_secret: client-secret,
			scopes: [charge], params: {audience: payments}}`, ca.file, s.url())
}

// TestOAuth2: a receiver and a token server behind a CA that no system trusts. One token serves all sends; one that the
// receiver refuses is dropped; without a token server nothing goes out and nothing is charged.
func TestOAuth2(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ca := newAuthority(t)
	tokens := newTokenServer(t, ca, time.Hour)
	r := newSecureReceiver(t, ca.server(t), tokens.guard)
	const width = 4
	d.relayTo(t, "a", r, shop{tokens.oauth2(ca), fmt.Sprintf("width: %d, breaker: {run: 5, pause: 50ms, cap: 50ms}", width), "base: 50ms, cap: 50ms"})
	d.insert(t, 50, "first")
	d.waitDone(t, 50, "first")
	d.expect(t, 50, "SELECT count(*) FROM outbox WHERE type = 'first' AND attempts = 1")
	if n := tokens.issued.Load(); n != 1 {
		t.Errorf("%d tokens for one stream of sends", n)
	}

	tokens.revoke()
	d.insert(t, 50, "second")
	d.waitDone(t, 50, "second")
	d.expect(t, 0, "SELECT count(*) FROM outbox WHERE type = 'second' AND attempts > 2")
	if n := d.count(t, "SELECT count(*) FROM outbox WHERE type = 'second' AND attempts = 2"); n == 0 || n > width {
		t.Errorf("%d messages met the token that was revoked, want 1 to %d", n, width)
	}
	if n := tokens.issued.Load(); n != 2 {
		t.Errorf("%d tokens after one was revoked, want 2", n)
	}

	tokens.refuse()
	tokens.revoke()
	d.insert(t, 50, "third")
	d.waitLeast(t, 1, "SELECT count(*) FROM outbox WHERE type = 'third' AND attempts = 0 AND error_class = 'refused' AND last_error LIKE 'no token: %'")
	d.expect(t, 0, "SELECT count(*) FROM outbox WHERE type = 'third' AND attempts > 1")
	tokens.open(t)
	d.waitDone(t, 50, "third")
	d.expect(t, 0, "SELECT count(*) FROM outbox WHERE type = 'third' AND attempts > 2")
	r.expectSends(t, d)
}

// TestTokensExpire: tokens that live for two seconds, and messages all the time. New ones come before the old ones end.
func TestTokensExpire(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ca := newAuthority(t)
	tokens := newTokenServer(t, ca, 2*time.Second)
	r := newSecureReceiver(t, ca.server(t), tokens.guard)
	d.relayTo(t, "a", r, shop{tokens.oauth2(ca), "", ""})
	n := 0
	eventually(t, patience, func() error {
		d.insert(t, 1, "charge_order")
		n++
		if got := tokens.issued.Load(); got < 4 {
			return fmt.Errorf("%d tokens, want 4", got)
		}
		return nil
	})
	d.waitDone(t, n, "charge_order")
	d.expect(t, n, "SELECT count(*) FROM outbox WHERE attempts = 1")
	used := map[string]bool{}
	for _, one := range r.seen() {
		used[one.header.Get("Authorization")] = true
	}
	if len(used) < 3 {
		t.Errorf("%d tokens were used in %d requests", len(used), n)
	}
}

// TestUntrustedCA: without the CA's file the receiver is not believed; nothing goes out.
func TestUntrustedCA(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ca := newAuthority(t)
	r := newSecureReceiver(t, ca.server(t), always(reply{}))
	d.relayTo(t, "a", r, shop{"dedupe: 24h", "", ""})
	d.insert(t, 10, "charge_order")
	d.waitLeast(t, 5, "SELECT count(*) FROM outbox WHERE error_class = 'tls' AND attempts = 0 AND state = 'pending'")
	if came, _, _ := r.figures(); came != 0 {
		t.Errorf("%d requests came", came)
	}
}

// TestClientCertificate: a receiver that wants a certificate takes requests with one, and none without.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ca := newAuthority(t)
	secure := ca.server(t)
	secure.ClientCAs, secure.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	secure.ClientCAs.AddCert(ca.cert)
	r := newSecureReceiver(t, secure, always(reply{}))
	certFile, keyFile := ca.client(t, "shop")
	d.insert(t, 10, "charge_order")
	without := d.relayTo(t, "without", r, shop{fmt.Sprintf("dedupe: 24h, tls: {ca_file: %q}", ca.file), "", ""})
	d.waitLeast(t, 1, "SELECT count(*) FROM outbox WHERE error_class IS NOT NULL")
	if came, _, _ := r.figures(); came != 0 {
		t.Errorf("%d requests came without a certificate", came)
	}
	d.expect(t, 0, "SELECT count(*) FROM outbox WHERE attempts > 0 OR error_class <> 'tls'")
	without.terminate(t)
	d.relayTo(t, "with", r, shop{fmt.Sprintf("dedupe: 24h, tls: {ca_file: %q, cert_file: %q, key_file: %q}", ca.file, certFile, keyFile), "", ""})
	d.waitDone(t, 10, "charge_order")
}

// TestBearerFile: a secret's file is replaced while the relay runs, and the next sends have the new one.
func TestBearerFile(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	r := newReceiver(t, always(reply{}))
	file := writeFile(t, "bearer", []byte("first-secret\n"))
	p := d.relayTo(t, "a", r, shop{fmt.Sprintf("dedupe: 24h, bearer_file: %q", file), "", ""})
	d.insert(t, 10, "before")
	d.waitDone(t, 10, "before")
	if err := os.Rename(writeFile(t, "bearer", []byte("second-secret\n")), file); err != nil {
		t.Fatal(err)
	}
	d.insert(t, 10, "after")
	d.waitDone(t, 10, "after")
	for _, one := range r.seen() {
		want := map[string]string{"before": "Bearer first-secret", "after": "Bearer second-secret"}[one.header.Get("Outbox-Type")]
		if got := one.header.Get("Authorization"); got != want {
			t.Errorf("Authorization: %s, want %s", got, want)
		}
	}
	if log := p.stderr.String(); strings.Contains(log, "-secret") {
		t.Errorf("the log has a secret:\n%s", log)
	}
}
