package webhook

import (
	"bytes"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/relay"
)

const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// TestRequest holds what a request is, on the wire.
func TestRequest(t *testing.T) {
	t.Parallel()
	w := newWire(t, reply(ok))
	s := newSink(t, w.url()+"?a=b", func(c *Config) { c.UserAgent = "outboxd/1.2.3" })
	m := newMessage("wire-1")
	m.ID, m.Attempts, m.SchemaVersion, m.Traceparent, m.Type = "row-1", 2, 3, trace, "bestellt-ä"
	m.Headers = []relay.Header{
		{Name: "tracestate", Value: "a=b"},
		{Name: "X-Empty", Value: ""},
		{Name: "X-Shop", Value: "Köln"},
		{Name: "x-shop", Value: "second"},
	}
	if o := s.Send(t.Context(), m); o.Kind != relay.KindDone {
		t.Fatalf("%+v", o)
	}
	requests, _, _ := w.seen()
	r := requests[0]
	if r.Method != http.MethodPost || r.URL.String() != "/in?a=b" || r.Host != w.listener.Addr().String() {
		t.Errorf("%s %s at %s", r.Method, r.URL, r.Host)
	}
	want := http.Header{
		"Content-Length": {"15"}, "Content-Type": {"application/json"}, "Idempotency-Key": {"wire-1"}, "Outbox-Attempt": {"3"},
		"Outbox-Schema-Version": {"3"}, "Outbox-Type": {"bestellt-%C3%A4"}, "Traceparent": {trace}, "Tracestate": {"a=b"},
		"User-Agent": {"outboxd/1.2.3"}, "X-Empty": {""}, "X-Shop": {"K%C3%B6ln", "second"},
	}
	if !reflect.DeepEqual(r.Header, want) {
		t.Errorf("headers %v, want %v", r.Header, want)
	}
}

// TestReservedNames holds that a row cannot set what is ours or the connection's, and that the log says so once a type.
func TestReservedNames(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cfg := Config{KeyHeader: "PayPal-Request-Id", Headers: map[string]Source{"X-Tenant": is("ours")}}.withDefaults()
	h := newHeaders(cfg, slog.New(slog.NewTextHandler(&log, nil)))
	plain, err := h.of(newMessage("a"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"idempotency-key", "CONTENT-TYPE", "Traceparent", "User-Agent", "Host", "content-length", "Transfer-Encoding",
		"Connection", "Authorization", "Cookie", "Proxy-Authorization", "proxy-x", "webhook-id", "ce-id", "ce_id",
		"cloudEvents:id", "Outbox-Attempt", "outbox-anything", "Nats-Msg-Id", "Expect", "Upgrade", "TE", "Trailer", "Keep-Alive",
		"x-TENANT", "paypal-request-id",
	} {
		m := newMessage("a")
		m.Headers = []relay.Header{{Name: name, Value: "theirs"}}
		got, err := h.of(m)
		if err != nil || !reflect.DeepEqual(got, plain) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || strings.Contains(log.String(), "theirs") {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
}

// TestHeadersThatCannotBeSent end a message before anything goes out: no later send can change them.
func TestHeadersThatCannotBeSent(t *testing.T) {
	t.Parallel()
	w := newWire(t, reply(ok))
	s := newSink(t, w.url(), nil)
	for name, change := range map[string]func(*relay.Message){
		"line break":      func(m *relay.Message) { m.Headers = []relay.Header{{Name: "X", Value: "a\r\nEvil: b"}} },
		"NUL":             func(m *relay.Message) { m.Headers = []relay.Header{{Name: "X", Value: "a\x00"}} },
		"tab":             func(m *relay.Message) { m.Headers = []relay.Header{{Name: "X", Value: "a\tb"}} },
		"delete":          func(m *relay.Message) { m.Headers = []relay.Header{{Name: "X", Value: "a\x7f"}} },
		"no name":         func(m *relay.Message) { m.Headers = []relay.Header{{Name: "", Value: "a"}} },
		"blank in a name": func(m *relay.Message) { m.Headers = []relay.Header{{Name: "X Y", Value: "a"}} },
		"colon in a name": func(m *relay.Message) { m.Headers = []relay.Header{{Name: "X:Y", Value: "a"}} },
		"name not ASCII":  func(m *relay.Message) { m.Headers = []relay.Header{{Name: "Ä", Value: "a"}} },
		"name of lines":   func(m *relay.Message) { m.Headers = []relay.Header{{Name: "X\r\nY", Value: "a"}} },
		"type":            func(m *relay.Message) { m.Type = "a\nb" },
		"content type":    func(m *relay.Message) { m.ContentType = "a\nb" },
	} {
		m := newMessage("a")
		change(m)
		o := s.Send(t.Context(), m)
		if wantKind(t, o, relay.KindFail, classInvalid, "header"); o.Reason != relay.Rejected || w.count() != 0 {
			t.Errorf("%s: %+v after %d requests", name, o, w.count())
		}
	}
}

func TestTraceparent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		trace: true, "": false, strings.ToUpper(trace): false, trace[:54]: false, "01" + trace[2:]: false,
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": false, "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": false,
	} {
		m := newMessage("a")
		m.Traceparent = text
		h, err := newHeaders(Config{}.withDefaults(), slog.New(slog.DiscardHandler)).of(m)
		if err != nil || (h.Get(headerTraceparent) != "") != want {
			t.Errorf("%q: %v, %v", text, h, err)
		}
	}
}

// TestKeyHeader holds that the wire key goes under the name and in the form that a provider wants, and that no row sets it.
func TestKeyHeader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, format, want string }{
		{"", "", "wire-1"}, {"", KeyBare, "wire-1"}, {"", KeySFString, `"wire-1"`}, {"PayPal-Request-Id", "", "wire-1"}, {"requestid", KeySFString, `"wire-1"`},
	} {
		w := newWire(t, reply(ok))
		s := newSink(t, w.url(), func(cfg *Config) { cfg.KeyHeader, cfg.KeyFormat = c.name, c.format })
		m := newMessage("wire-1")
		m.Headers = []relay.Header{{Name: "idempotency-key", Value: "theirs"}, {Name: strings.ToUpper(c.name) + "X", Value: "theirs"}, {Name: strings.ToUpper(c.name), Value: "theirs"}}
		if c.name == "" {
			m.Headers = m.Headers[:2]
		}
		if o := s.Send(t.Context(), m); o.Kind != relay.KindDone {
			t.Fatalf("%+v", o)
		}
		requests, _, _ := w.seen()
		name := c.name
		if name == "" {
			name = defaultKeyHeader
		}
		if got := requests[0].Header.Values(name); len(got) != 1 || got[0] != c.want {
			t.Errorf("%+v: %q", c, got)
		}
		if c.name != "" && requests[0].Header.Get(defaultKeyHeader) != "" {
			t.Errorf("%+v: it goes under the usual name, too", c)
		}
	}
}

func TestSFString(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": `""`, "a-1": `"a-1"`, `a"b\c`: `"a\"b\\c"`} {
		if got := sfString(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestAllowHeaders holds which of a row's headers go out where there is a list of them. The trace always does.
func TestAllowHeaders(t *testing.T) {
	t.Parallel()
	m := newMessage("a")
	m.Headers = []relay.Header{
		{Name: "baggage", Value: "k=v"},
		{Name: "tracestate", Value: "a=b"},
		{Name: "X Y", Value: "not even a name"},
		{Name: "X-Other", Value: "b"},
		{Name: "x-region", Value: "eu"},
		{Name: "x-tenant", Value: "theirs"},
	}
	for name, c := range map[string]struct {
		allow []string
		want  string
	}{
		"none":        {[]string{}, "Tracestate"},
		"one":         {[]string{"X-Region"}, "Tracestate X-Region"},
		"the baggage": {[]string{"Baggage"}, "Baggage Tracestate"},
	} {
		cfg := Config{AllowHeaders: c.allow, Headers: map[string]Source{"X-Tenant": is("ours")}}.withDefaults()
		plain, err := newHeaders(cfg, slog.New(slog.DiscardHandler)).of(newMessage("a"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := newHeaders(cfg, slog.New(slog.DiscardHandler)).of(m)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for name := range got {
			if plain[name] == nil {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		if strings.Join(names, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, names, c.want)
		}
	}
	if _, err := newHeaders(Config{}.withDefaults(), slog.New(slog.DiscardHandler)).of(m); err == nil {
		t.Error("without a list a name that HTTP does not take is dropped silently")
	}
}
