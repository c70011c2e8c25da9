package webhook

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/relay"
)

// TestNotPublic holds which addresses are refused, in all their clothes.
func TestNotPublic(t *testing.T) {
	t.Parallel()
	e := newEgress()
	for address, rule := range map[string]string{
		"127.0.0.1:80": "loopback", "127.255.255.254:80": "loopback", "0.0.0.0:80": "this host", "0.1.2.3:80": "this host",
		"10.0.0.5:443": "RFC 1918", "172.16.0.1:80": "RFC 1918", "172.31.255.255:80": "RFC 1918", "192.168.1.1:80": "RFC 1918",
		"169.254.169.254:80": "link-local", "100.64.0.1:80": "carrier", "100.127.255.255:80": "carrier",
		"192.0.0.8:80": "protocols", "192.0.2.1:80": "documentation", "198.51.100.7:80": "documentation", "203.0.113.9:80": "documentation",
		"198.18.0.1:80": "benchmarks", "224.0.0.1:80": "multicast", "240.0.0.1:80": "reserved", "255.255.255.255:80": "reserved",
		"[::1]:80": "loopback", "[::]:80": "unspecified", "[::7f00:1]:80": "old form",
		"[::ffff:10.0.0.1]:80": "RFC 1918", "[::ffff:127.0.0.1]:80": "loopback", "[::ffff:169.254.169.254]:80": "link-local",
		"[64:ff9b::a00:1]:80": "translator", "[64:ff9b::808:808]:80": "translator", "[64:ff9b:1::1]:80": "translator",
		"[fc00::1]:80": "RFC 4193", "[fd12:3456::1]:80": "RFC 4193", "[fe80::1]:80": "link-local", "[fe80::1%eth0]:80": "link-local",
		"[ff02::1]:80": "multicast", "[2001:db8::1]:80": "documentation", "[2002:a00:1::1]:80": "tunnel", "[2001::1]:80": "tunnels",
		"[fec0::1]:80": "private", "nonsense": "cannot tell",
	} {
		if err := e.control("tcp", address, nil); err == nil || !strings.Contains(err.Error(), rule) || !strings.Contains(err.Error(), "public_only") {
			t.Errorf("%s: %v, want a refusal that says %q", address, err, rule)
		}
	}
	for _, address := range []string{
		"1.1.1.1:443", "8.8.8.8:80", "100.63.255.255:80", "100.128.0.0:80", "172.15.255.255:80", "172.32.0.0:80", "192.0.1.1:80",
		"223.255.255.255:80", "[2606:4700::1111]:443", "[2a00:1450::1]:80", "[::ffff:8.8.8.8]:80", "[2003::1]:80",
	} {
		if err := e.control("tcp", address, nil); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// newPublicSink makes a Sink with public_only of an address that its configuration could not have, as one to which a name led.
func newPublicSink(t *testing.T, to string) *Sink {
	t.Helper()
	s := newSink(t, "http://host.invalid", func(c *Config) { c.PublicOnly = true })
	s.url = must(url.Parse(to))
	return s
}

// TestPublicOnly holds that the address that is dialled is judged, whatever name or spelling led to it, and that a listener
// there hears of nothing.
func TestPublicOnly(t *testing.T) {
	t.Parallel()
	connected := make(chan struct{}, 100)
	l := listen(t, func(net.Conn) { connected <- struct{}{} })
	_, port, err := net.SplitHostPort(l)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]"} {
		s := newPublicSink(t, "http://"+host+":"+port)
		wantKind(t, s.Send(t.Context(), newMessage("a")), relay.KindUnsent, classRefused, "public_only refuses")
		s = newPublicSink(t, "https://"+host+":"+port)
		wantKind(t, s.Send(t.Context(), newMessage("a")), relay.KindUnsent, classRefused, "public_only refuses")
	}
	if len(connected) > 0 {
		t.Errorf("%d connections came", len(connected))
	}
}

// TestPublicOnlyOfTokens holds the same of the token server.
func TestPublicOnlyOfTokens(t *testing.T) {
	t.Parallel()
	w, server := newWire(t, reply(ok)), newWire(t, reply(ok))
	s := newSink(t, "http://host.invalid", func(c *Config) {
		c.PublicOnly = true
		c.OAuth2 = &OAuth2{TokenURL: "http://host.invalid", ClientID: "me", ClientSecret: is("hunter22")}
	})
	s.url, s.credentials.tokens.server.TokenURL = must(url.Parse(w.url())), server.url()
	o := s.Send(t.Context(), newMessage("a"))
	wantKind(t, o, relay.KindUnsent, classRefused, "no token", "public_only refuses 127.0.0.1")
	if w.count()+server.count() > 0 {
		t.Error("a request came")
	}
}

// TestNeverPublic holds which hosts of a URL are a mistake beside public_only, before anything is looked up.
func TestNeverPublic(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"10.0.0.1": "public_only refuses 10.0.0.1, which is private (RFC 1918)", "127.0.0.1:8080": "public_only refuses 127.0.0.1, which is loopback",
		"[::ffff:127.0.0.1]": "public_only refuses 127.0.0.1, which is loopback", "[fe80::1%25eth0]": "public_only refuses fe80::1, which is link-local (RFC 4291)",
		"localhost": "public_only refuses localhost, which is this host", "LOCALHOST.:1": "public_only refuses localhost, which is this host",
		"a.localhost": "public_only refuses a.localhost, which is this host",
		"8.8.8.8":     "", "[2606:4700::1111]": "", "billing.internal": "", "notlocalhost": "",
	} {
		if want != "" {
			want += "; name a host of the public internet, or take public_only out"
		}
		url := "https://" + host + "/in"
		for key, cfg := range map[string]Config{
			"webhook.url: ":              {URL: url, PublicOnly: true},
			"webhook.oauth2.token_url: ": {URL: "https://h", PublicOnly: true, OAuth2: &OAuth2{TokenURL: url, ClientID: "me", ClientSecret: is("hunter22")}},
		} {
			if got := strings.TrimPrefix(textOf(cfg.Validate()), key); got != want {
				t.Errorf("%s%s: %q, want %q", key, host, got, want)
			}
			if cfg.PublicOnly = false; cfg.Validate() != nil {
				t.Errorf("%s%s: %v, without public_only", key, host, cfg.Validate())
			}
		}
	}
}

// TestNoColumnSteers holds that nothing in a row has a say in where its message goes.
func TestNoColumnSteers(t *testing.T) {
	t.Parallel()
	connected := make(chan struct{}, 100)
	trap := listen(t, func(net.Conn) { connected <- struct{}{} })
	w := newWire(t, func(c net.Conn, nth int) {
		reply("HTTP/1.1 307 There\r\nLocation: http://"+trap+"/\r\nContent-Length: 0\r\n\r\n")(c, nth)
	})
	s := newSink(t, w.url(), func(c *Config) {
		c.Format, c.CloudEvents = FormatCloudEvents, CloudEvents{Source: "urn:test", Subject: true, DataSchema: "https://s.internal/{type}"}
	})
	for _, text := range []string{
		"http://" + trap + "/", "//" + trap, "file:///etc/passwd", "http://2130706433/", "http://0177.0.0.1/", "http://u:p@" + trap, "../../admin", "?x=y", "*",
	} {
		m := newMessage("a")
		m.Type, m.RoutingKey, m.ContentType, m.AggregateType, m.AggregateID = text, text, text, &text, &text
		m.Payload = []byte(text)
		for _, name := range []string{
			"Host", "Location", "Referer", "Origin", "Forwarded", "X-Forwarded-Host", "X-Original-URL", "X-Rewrite-Url", "Proxy-Connection", "Via",
		} {
			m.Headers = append(m.Headers, relay.Header{Name: name, Value: text})
		}
		wantKind(t, s.Send(t.Context(), m), relay.KindRetry, class3xx)
		requests, _, _ := w.seen()
		r := requests[len(requests)-1]
		if r.Method != http.MethodPost || r.RequestURI != "/in" || r.Host != w.listener.Addr().String() {
			t.Errorf("%s: %s %s at %s", text, r.Method, r.RequestURI, r.Host)
		}
	}
	if len(connected) > 0 {
		t.Errorf("%d connections came to where a row led", len(connected))
	}
}
