package integration

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	rowsTrace  = "0af7651916cd43dd8448eb211c80319c"
	rowsSpan   = "b7ad6b7169203331"
	rowsParent = "00-" + rowsTrace + "-" + rowsSpan + "-01"
)

// traceCollector is an OTLP receiver that keeps the spans that come in.
type traceCollector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*otlp.Span
}

func newTraceCollector(t *testing.T) *traceCollector {
	t.Helper()
	c := &traceCollector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, of := range request.GetResourceSpans() {
			for _, scope := range of.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

// of is the one span of a wire key.
func (c *traceCollector) of(t *testing.T, wireKey string) *otlp.Span {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*otlp.Span
	for _, s := range c.spans {
		if attributeOf(s, "messaging.message.id") == wireKey {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans of %s, want 1", len(found), wireKey)
	}
	return found[0]
}

func attributeOf(s *otlp.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// tracedShop is a receiver that keeps the traceparent of each request by its idempotency key, and an outbox with two messages
// for it: one that has a trace, one that has none.
type tracedShop struct {
	*database
	config    string
	with, not string // the ids
	mu        sync.Mutex
	got       map[string]http.Header
}

func newTracedShop(t *testing.T, trace string) *tracedShop {
	t.Helper()
	s := &tracedShop{database: sqliteEngine().database(t), got: map[string]http.Header{}}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.got[r.Header.Get("Idempotency-Key")] = r.Header
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(receiver.Close)
	s.config = configFile(t, fmt.Sprintf(`
relay: {name: a, lease: 10s}
http: {listen: "off"}
%s
destinations: {billing: {webhook: {url: %q, dedupe: 24h}}}
routes: [{match: "*", to: billing, ordered: false}]
`, trace, receiver.URL))
	s.with, s.not = "11111111-1111-7111-8111-111111111111", "22222222-2222-7222-8222-222222222222"
	s.exec(t, "INSERT INTO outbox (id, type, traceparent, headers) VALUES ('"+s.with+"', 'charge_order', '"+rowsParent+"', '{\"tracestate\":\"vendor=1\"}')")
	s.exec(t, "INSERT INTO outbox (id, type) VALUES ('"+s.not+"', 'charge_order')")
	return s
}

// send runs the relay until all is sent, with more in its environment.
func (s *tracedShop) send(t *testing.T, env ...string) (log string) {
	t.Helper()
	_, log, code := outboxd(t, append(s.env(), env...), "run", "--once", "--config", s.config)
	if code != 0 || len(s.got) != 2 {
		t.Fatalf("exit code %d, %d messages came\n%s", code, len(s.got), log)
	}
	return log
}

// TestTraces holds a whole run to its spans: one for each send, linked to the trace of the row or its child, and the context
// of the span is what the receiver gets.
func TestTraces(t *testing.T) {
	t.Parallel()
	for _, trace := range []string{"trace: {parent: link}", "trace: {parent: child}"} {
		t.Run(trace, func(t *testing.T) {
			t.Parallel()
			c, s := newTraceCollector(t), newTracedShop(t, trace)
			s.send(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL)
			child := strings.Contains(trace, "child")
			linked, own := c.of(t, s.with), c.of(t, s.not)
			for id, span := range map[string]*otlp.Span{s.with: linked, s.not: own} {
				hop := fmt.Sprintf("00-%x-%x-01", span.GetTraceId(), span.GetSpanId())
				if got := s.got[id].Get("traceparent"); got != hop || span.GetName() != "send billing" || attributeOf(span, "outboxd.outcome") != "done" {
					t.Errorf("%s: the receiver got %s, and the span is %v", id, got, span)
				}
			}
			if inTrace := fmt.Sprintf("%x", linked.GetTraceId()) == rowsTrace; inTrace != child || (fmt.Sprintf("%x", linked.GetParentSpanId()) == rowsSpan) != child {
				t.Errorf("the span is %v", linked)
			}
			if links := linked.GetLinks(); !child && (len(links) != 1 || fmt.Sprintf("%x", links[0].GetTraceId()) != rowsTrace || fmt.Sprintf("%x", links[0].GetSpanId()) != rowsSpan) {
				t.Errorf("the links are %v", links)
			}
			if linked.GetKind() != otlp.Span_SPAN_KIND_CLIENT || own.GetKind() != otlp.Span_SPAN_KIND_PRODUCER || len(own.GetLinks()) != 0 {
				t.Errorf("kinds %v and %v, links %v", linked.GetKind(), own.GetKind(), own.GetLinks())
			}
			if state := s.got[s.with].Get("tracestate"); (state == "vendor=1") != child {
				t.Errorf("tracestate is %q", state)
			}
		})
	}
}

// TestTracesOff holds that without OTEL_* the row's trace goes on as it is, and that a collector that is away delays nothing.
func TestTracesOff(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{nil, {"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + freeAddress(t), "OTEL_SDK_DISABLED=true"}} {
		s := newTracedShop(t, "")
		s.send(t, env...)
		if got := s.got[s.with]; got.Get("traceparent") != rowsParent || got.Get("tracestate") != "vendor=1" || s.got[s.not].Get("traceparent") != "" {
			t.Errorf("%v: the receiver got %v and %v", env, got, s.got[s.not])
		}
	}
	s := newTracedShop(t, "")
	if log := s.send(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+freeAddress(t)); strings.Count(log, "traces not exported") > 1 {
		t.Errorf("the log is\n%s", log)
	}
	if hop := s.got[s.not].Get("traceparent"); len(hop) != len(rowsParent) {
		t.Errorf("the hop is %q", hop)
	}
}
