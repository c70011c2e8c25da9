package tracing

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const rows = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestWanted(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]struct{ wanted, refused bool }{
		"":                          {},
		"OTEL_SERVICE_NAME=shop":    {},
		"OTEL_TRACES_EXPORTER=otlp": {wanted: true},
		"OTEL_TRACES_EXPORTER=none OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318":               {},
		"OTEL_TRACES_EXPORTER=zipkin":                                                       {refused: true},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318":                                         {wanted: true},
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c:4318/v1/traces":                        {wanted: true},
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://c:4318":                                 {},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_SDK_DISABLED=true":                  {},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317 OTEL_EXPORTER_OTLP_PROTOCOL=grpc":        {refused: true},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc": {refused: true},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf":    {wanted: true},
	} {
		wanted, err := Wanted(func(name string) (string, bool) {
			for pair := range strings.FieldsSeq(env) {
				if key, value, _ := strings.Cut(pair, "="); key == name {
					return value, true
				}
			}
			return "", false
		})
		if wanted != want.wanted || (err != nil) != want.refused {
			t.Errorf("%q: %v, %v", env, wanted, err)
		}
	}
}

// TestWantedHidesSecrets: what the SDK would write out, since it cannot read it, is refused before, and not told.
func TestWantedHidesSecrets(t *testing.T) {
	t.Parallel()
	for value, refused := range map[string]bool{
		"HEADERS=Authorization: Bearer hunter2":                  true,
		"HEADERS=x-tenant=7,Authorization Bearer hunter2":        true,
		"HEADERS=Authorization=hunter2%zz":                       true,
		"HEADERS=my hunter2=1":                                   true,
		"TRACES_HEADERS=hunter2":                                 true,
		"TRACES_ENDPOINT=http://user:hunter2%zz@c":               true,
		"HEADERS=Authorization=Bearer%20hunter2, x-tenant = 7==": false,
		"TRACES_HEADERS=Authorization=Basic aHVudGVyMg==,empty=": false,
	} {
		name, value, _ := strings.Cut(value, "=")
		env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}
		env["OTEL_EXPORTER_OTLP_"+name] = value
		wanted, err := Wanted(func(name string) (string, bool) { value, ok := env[name]; return value, ok })
		if wanted == refused || (err != nil) != refused || err != nil && (strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), name)) {
			t.Errorf("%s=%s: %v, %v", name, value, wanted, err)
		}
	}
}

// traced sends one message through a sink, and gives the span and what the sink got.
func traced(t *testing.T, to Destination, m relay.Message, o relay.Outcome) (span tracetest.SpanStub, got relay.Message) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	tracing := newTracing(sdktrace.NewSimpleSpanProcessor(exporter), resource.Empty())
	inner := &relaytest.Sink{AnswerFunc: func(_ context.Context, s *relaytest.Sending) relay.Outcome {
		got = *s.Message
		return o
	}}
	before := m
	if sent := tracing.Sink(to, inner).Send(t.Context(), &m); sent != o {
		t.Errorf("the outcome is %+v, want %+v", sent, o)
	}
	if m.Traceparent != before.Traceparent || m.Trace != nil {
		t.Errorf("the message was changed: %+v", m)
	}
	spans := exporter.GetSpans()
	tracing.Close()
	if len(spans) != 1 {
		t.Fatalf("%d spans", len(spans))
	}
	return spans[0], got
}

func has(span tracetest.SpanStub, want ...attribute.KeyValue) bool {
	all := attribute.NewSet(span.Attributes...)
	for _, w := range want {
		if value, ok := all.Value(w.Key); !ok || value != w.Value {
			return false
		}
	}
	return true
}

// TestSend holds how a span stands to the row's trace, and that the hop is the span's own context.
func TestSend(t *testing.T) {
	t.Parallel()
	row := relay.Message{WireKey: "k", Traceparent: rows, Headers: []relay.Header{{Name: "tracestate", Value: "vendor=1"}}}
	row.Type, row.RoutingKey = "charge_order", "charge_order"
	orphan := row
	orphan.Traceparent = "00-not-one"
	for name, c := range map[string]struct {
		m      relay.Message
		child  bool
		kind   trace.SpanKind
		links  int
		parent bool
		state  string
	}{
		"linked":              {row, false, trace.SpanKindClient, 1, false, ""},
		"child":               {row, true, trace.SpanKindClient, 0, true, "vendor=1"},
		"no trace in the row": {orphan, true, trace.SpanKindProducer, 0, false, ""},
	} {
		to := Destination{Name: "billing", System: "webhook", Server: "h", Port: 443, Child: c.child}
		span, got := traced(t, to, c.m, relay.Done("ch_1"))
		if span.Name != "send billing" || span.SpanKind != c.kind || len(span.Links) != c.links || span.Parent.IsValid() != c.parent || span.Status.Code != codes.Unset {
			t.Errorf("%s: %s, %s, %d links, parent %v, %v", name, span.Name, span.SpanKind, len(span.Links), span.Parent, span.Status)
		}
		if (span.SpanContext.TraceID().String() == rows[3:35]) != c.parent {
			t.Errorf("%s: the trace is %s", name, span.SpanContext.TraceID())
		}
		if c.links == 1 && (span.Links[0].SpanContext.SpanID().String() != rows[36:52] || !span.Links[0].SpanContext.IsRemote()) {
			t.Errorf("%s: the link is %+v", name, span.Links[0])
		}
		if want := "00-" + span.SpanContext.TraceID().String() + "-" + span.SpanContext.SpanID().String() + "-01"; got.Hop() != want || got.Traceparent != c.m.Traceparent {
			t.Errorf("%s: the hop is %s, want %s; the row's is %s", name, got.Hop(), want, got.Traceparent)
		}
		if state, own := got.Tracestate(); state != c.state || !own {
			t.Errorf("%s: tracestate is %q, %v", name, state, own)
		}
		if !has(span, attribute.String("messaging.system", "webhook"), attribute.String("messaging.operation.type", "send"), attribute.String("messaging.message.id", "k"),
			attribute.String("messaging.destination.name", "billing"), attribute.String("server.address", "h"), attribute.Int("server.port", 443),
			attribute.String("outboxd.outcome", "done"), attribute.Int("outboxd.attempt", 1)) {
			t.Errorf("%s: %v", name, span.Attributes)
		}
	}
}

func TestSendFails(t *testing.T) {
	t.Parallel()
	span, _ := traced(t, Destination{Name: "billing", System: "webhook"}, relay.Message{}, relay.Retry("http_5xx", "HTTP 503: password=hunter2"))
	if span.Status.Code != codes.Error || !has(span, attribute.String("error.type", "http_5xx"), attribute.String("outboxd.outcome", "retry")) {
		t.Errorf("%v, %v", span.Status, span.Attributes)
	}
	if strings.Contains(span.Status.Description, "hunter2") {
		t.Error(span.Status.Description)
	}
}

func TestSendToKafka(t *testing.T) {
	t.Parallel()
	m := relay.Message{AggregateID: new("42"), Payload: []byte("1")}
	m.RoutingKey = "orders"
	span, _ := traced(t, Destination{Name: "events", System: "kafka", Topic: "outbox.{routing_key}"}, m, relay.Done("3@17"))
	if !has(span, attribute.String("messaging.destination.name", "outbox.orders"), attribute.String("messaging.destination.template", "outbox.{routing_key}"),
		attribute.String("messaging.kafka.message.key", "42"), attribute.String("messaging.destination.partition.id", "3"), attribute.Int64("messaging.kafka.offset", 17)) {
		t.Errorf("%v", span.Attributes)
	}
}

// TestOff holds that without tracing a sink stands as it is.
func TestOff(t *testing.T) {
	t.Parallel()
	var off *Tracing
	inner := &relaytest.Sink{}
	if got := off.Sink(Destination{}, inner); got != relay.Sink(inner) {
		t.Errorf("%T", got)
	}
	off.Close()
}

// failing is an exporter whose collector is away.
type failing struct{}

func (failing) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	return errors.New("away\n" + strings.Repeat("x", 1000))
}
func (failing) Shutdown(context.Context) error { return nil }

// TestPatient holds that a collector that is away is told of now and then, and is no error of anybody.
func TestPatient(t *testing.T) {
	t.Parallel()
	var told bytes.Buffer
	p := &patient{SpanExporter: failing{}, log: slog.New(slog.NewTextHandler(&told, nil))}
	for range 100 {
		if err := p.ExportSpans(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if lines := strings.Count(told.String(), "\n"); lines != 1 || told.Len() > 400 {
		t.Errorf("%d lines: %s", lines, &told)
	}
}
