package webhook

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	event "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/outboxd/outboxd/relay"
)

// parse reads a request as the public SDK does. That leaves values percent-encoded, which the binding undoes.
func parse(t *testing.T, r *http.Request, body string) *event.Event {
	t.Helper()
	req := &http.Request{Header: r.Header.Clone(), Body: io.NopCloser(strings.NewReader(body))}
	for name, values := range req.Header {
		if strings.HasPrefix(name, "Ce-") {
			values[0] = must(url.PathUnescape(values[0]))
		}
	}
	e, err := cehttp.NewEventFromHTTPRequest(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Validate(); err != nil {
		t.Error(err)
	}
	return e
}

// TestCloudEvents holds that the public SDK reads from our requests what is in our rows.
func TestCloudEvents(t *testing.T) {
	t.Parallel()
	w := newWire(t, reply(ok))
	s := newSink(t, w.url(), func(c *Config) {
		c.Format = FormatCloudEvents
		c.CloudEvents = CloudEvents{
			Source: "urn:shop:100%", TypePrefix: "com.example.", DataSchema: "https://schemas.internal/{type}/{schema_version}",
			Subject: true, Extensions: []string{"tenant", "region"},
		}
		c.AllowHeaders = []string{"X-Kept"}
	})
	for _, id := range []string{"0192f0c1-7c4e-7d3e-8f00-0123456789ab", "A_-z9"} {
		for _, kind := range []string{"order_placed", "bestellt ä", `"100%"`, "注文😀", "a/b?c#d"} {
			for _, payload := range []string{`{"a": 1}`, "\x00\xff", "größe", strings.Repeat("x", 1<<16)} {
				m := newMessage(id)
				m.Type, m.Payload, m.Seq, m.SchemaVersion, m.Traceparent = kind, []byte(payload), 42, 3, trace
				m.AggregateID = new("Köln \"1\"\n%41")
				m.CreatedAt = time.Date(2026, 11, 30, 1, 2, 3, 456789000, time.FixedZone("", 3600))
				m.Headers = []relay.Header{
					{Name: "Tenant", Value: "größe"}, {Name: "X-Dropped", Value: "a"}, {Name: "X-Kept", Value: "b"}, {Name: "tracestate", Value: "a=b"},
				}
				if o := s.Send(t.Context(), m); o.Kind != relay.KindDone {
					t.Fatalf("%+v", o)
				}
				requests, bodies, _ := w.seen()
				r := requests[len(requests)-1]
				checkEvent(t, parse(t, r, bodies[len(bodies)-1]), m)
				if r.Header.Get("Tenant") != "" || r.Header.Get("X-Dropped") != "" || r.Header.Get("X-Kept") != "b" || r.Header.Get("Tracestate") != "a=b" ||
					r.Header.Get("Ce-Datacontenttype") != "" || r.Header.Get("Ce-Region") != "" || r.Header.Get("Idempotency-Key") != id {
					t.Errorf("%v", r.Header)
				}
			}
		}
	}
}

func checkEvent(t *testing.T, e *event.Event, m *relay.Message) {
	t.Helper()
	if e.SpecVersion() != "1.0" || e.ID() != m.WireKey || e.Source() != "urn:shop:100%" || e.Type() != "com.example."+m.Type ||
		!e.Time().Equal(m.CreatedAt) || e.DataContentType() != "application/json" || e.Subject() != *m.AggregateID ||
		e.DataSchema() != "https://schemas.internal/"+url.PathEscape(m.Type)+"/3" || !bytes.Equal(e.Data(), m.Payload) {
		t.Errorf("%+v is not %+v", e, m)
	}
	for name, want := range map[string]string{
		"sequence": "00000000000000000042", "schemaversion": "3", "partitionkey": *m.AggregateID, "traceparent": trace, "tracestate": "a=b", "tenant": "größe",
	} {
		if got := e.Extensions()[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if n := len(e.Extensions()); n != 6 {
		t.Errorf("%d extensions: %v", n, e.Extensions())
	}
}

// TestBareEvent holds that what a row has not got is not in its event.
func TestBareEvent(t *testing.T) {
	t.Parallel()
	m := newMessage("a")
	for name, id := range map[string]*string{"no aggregateid": nil, "an empty one": new("")} {
		m.AggregateID = id
		var names []string
		for _, h := range (CloudEvents{Source: "urn:test", Subject: true, Extensions: []string{"tenant"}}).attributes(m) {
			names = append(names, h.Name)
		}
		if got := strings.Join(names, " "); got != "ce-specversion ce-id ce-source ce-type ce-sequence ce-schemaversion" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestEventEncoded holds the rule of the HTTP protocol binding, 3.1.3.2.
func TestEventEncoded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain-~!": "plain-~!", "a b": "a%20b", `"`: "%22", "100%": "100%25", "Euro €": "Euro%20%E2%82%AC", "\r\n": "%0D%0A", "\x7f": "%7F", "😀": "%F0%9F%98%80",
	} {
		if got := eventEncoded(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestEventOfAnEvent holds that a body that would be read as an event itself is no binary event.
func TestEventOfAnEvent(t *testing.T) {
	t.Parallel()
	w := newWire(t, reply(ok))
	for format, kind := range map[string]relay.Kind{FormatPlain: relay.KindDone, FormatCloudEvents: relay.KindFail} {
		s := newSink(t, w.url(), func(c *Config) {
			c.Format = format
			if format == FormatCloudEvents {
				c.CloudEvents.Source = "urn:test"
			}
		})
		m := newMessage("a")
		m.ContentType = "Application/CloudEvents+json; charset=UTF-8"
		if o := s.Send(t.Context(), m); o.Kind != kind {
			t.Errorf("%s: %+v", format, o)
		}
	}
	if w.count() != 1 {
		t.Errorf("%d requests", w.count())
	}
}
