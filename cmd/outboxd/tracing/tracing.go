// Package tracing makes a span of each send, where the environment asks for OpenTelemetry, and hands its context on to the
// destination. It is a wrapper around sinks: nothing else of the relay knows of it.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const (
	flushFor = 2 * time.Second  // how long an end waits for the spans that are not exported yet
	sayEvery = 10 * time.Second // between log lines of an exporter that fails
)

// Tracing makes the spans of a process. A nil one makes none.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// Wanted tells whether the environment asks for traces: by OTEL_TRACES_EXPORTER=otlp, or by the endpoint of an OTLP
// collector; OTEL_SDK_DISABLED=true and OTEL_TRACES_EXPORTER=none say no. An error says what it asks for and cannot have.
func Wanted(env func(string) (string, bool)) (bool, error) {
	get := func(name string) string {
		value, _ := env(name)
		return strings.TrimSpace(value)
	}
	exporter := get("OTEL_TRACES_EXPORTER")
	endpoint := get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") + get("OTEL_EXPORTER_OTLP_ENDPOINT")
	protocol := get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
	if protocol == "" {
		protocol = get("OTEL_EXPORTER_OTLP_PROTOCOL")
	}
	switch {
	case strings.EqualFold(get("OTEL_SDK_DISABLED"), "true"), exporter == "none", exporter == "" && endpoint == "":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, errors.New("OTEL_TRACES_EXPORTER: outboxd exports traces by otlp only")
	case protocol != "" && protocol != "http/protobuf":
		return false, errors.New("OTEL_EXPORTER_OTLP_PROTOCOL: outboxd exports by http/protobuf only, which collectors take on port 4318")
	}
	if err := readable(get); err != nil {
		return false, err
	}
	return true, nil
}

// readable looks at what can hold a secret before the SDK does: that writes to the standard error, word for word, what it
// cannot read of a header or an endpoint, and goes on without it.
func readable(get func(name string) string) error {
	for _, of := range []string{"OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"} {
		if _, err := url.Parse(get(of + "ENDPOINT")); err != nil {
			return errors.New(of + "ENDPOINT is no URL")
		}
		headers := get(of + "HEADERS")
		if headers == "" {
			continue
		}
		for i, pair := range strings.Split(headers, ",") {
			name, value, ok := strings.Cut(pair, "=")
			if _, err := url.PathUnescape(value); !ok || err != nil || !headerName.MatchString(strings.TrimSpace(name)) {
				return fmt.Errorf("%sHEADERS wants name=value, with commas between and a %% in a value written as %%25: its part %d is none", of, i+1)
			}
		}
	}
	return nil
}

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// Open makes what the standard variables OTEL_* describe. It connects to nothing yet, and an exporter that is away holds up
// nobody: spans wait in a bounded queue, and what does not fit is dropped.
func Open(ctx context.Context, version string, log *slog.Logger) (*Tracing, error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "outboxd"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil && about == nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	return newTracing(sdktrace.NewBatchSpanProcessor(&patient{SpanExporter: exporter, log: log}), about), nil
}

func newTracing(processor sdktrace.SpanProcessor, about *resource.Resource) *Tracing {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(processor), sdktrace.WithResource(about))
	return &Tracing{provider, provider.Tracer("github.com/outboxd/outboxd")}
}

// Close exports what waits, for as long as an end can take.
func (t *Tracing) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushFor)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // what is not exported by then is lost, and nothing depends on it
}

// patient is an exporter whose faults are told now and then, and are nobody else's.
type patient struct {
	sdktrace.SpanExporter
	log *slog.Logger

	mu   sync.Mutex
	said time.Time
}

// ExportSpans implements sdktrace.SpanExporter.
func (p *patient) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := p.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.said) >= sayEvery {
		p.said = time.Now()
		p.log.Warn("traces not exported: the spans are lost", "spans", len(spans), "err", inShort(err))
	}
	return nil
}

// inShort is the start of an error in one line: a collector's answer may be a page.
func inShort(err error) string {
	words := strings.Join(strings.Fields(err.Error()), " ")
	if len(words) > 200 {
		words = strings.ToValidUTF8(words[:200], "") + " …"
	}
	return words
}
