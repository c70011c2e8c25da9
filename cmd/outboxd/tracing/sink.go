package tracing

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/outboxd/outboxd/relay"
)

// Destination is what spans tell of where they send to.
type Destination struct {
	Name   string // in the configuration
	System string // messaging.system, such as kafka
	Topic  string // of Kafka; may hold {routing_key} and {type}
	Server string // server.address; "" where there is none, or are several
	Port   int    // server.port; 0: none
	Child  bool   // a send is a child of the row's trace, and not only linked to it
}

// Sink is a sink whose sends are spans. Without tracing it is the sink itself.
func (t *Tracing) Sink(to Destination, inner relay.Sink) relay.Sink {
	if t == nil {
		return inner
	}
	return &sink{inner, t.tracer, to}
}

type sink struct {
	relay.Sink
	tracer trace.Tracer
	to     Destination
}

// Send implements relay.Sink. The row's trace context is that of the message's creation, which is never changed: the span is
// linked to it, or its child where the configuration says so, and its own context is what travels on.
func (s *sink) Send(ctx context.Context, m *relay.Message) relay.Outcome {
	created := creation(m)
	options := []trace.SpanStartOption{trace.WithAttributes(s.attributes(m)...)}
	started := ctx
	switch {
	case !created.IsValid():
		options = append(options, trace.WithSpanKind(trace.SpanKindProducer))
	case s.to.Child:
		options = append(options, trace.WithSpanKind(trace.SpanKindClient))
		started = trace.ContextWithRemoteSpanContext(ctx, created)
	default:
		options = append(options, trace.WithSpanKind(trace.SpanKindClient), trace.WithLinks(trace.Link{SpanContext: created}))
	}
	started, span := s.tracer.Start(started, "send "+s.to.Name, options...)
	defer span.End()
	sent := *m
	sent.Trace = hop(started)
	o := s.Sink.Send(ctx, &sent)
	span.SetAttributes(s.outcome(o)...)
	if o.Kind != relay.KindDone {
		span.SetStatus(codes.Error, o.Class)
	}
	return o
}

// creation is the trace context that the application wrote into the row; an invalid one where it wrote none.
func creation(m *relay.Message) trace.SpanContext {
	if !relay.IsTraceparent(m.Traceparent) {
		return trace.SpanContext{}
	}
	row := propagation.MapCarrier{"traceparent": m.Traceparent}
	for _, h := range m.Headers {
		if h.Name == "tracestate" {
			row["tracestate"] = h.Value
		}
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), row))
}

// hop is the trace context of a span, as a destination gets it.
func hop(ctx context.Context) *relay.TraceContext {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return &relay.TraceContext{Traceparent: carrier["traceparent"], Tracestate: carrier["tracestate"]}
}
