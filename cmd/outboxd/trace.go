package main

import (
	"context"
	"log/slog"
	"net"
	"net/url"
	"strconv"

	"github.com/outboxd/outboxd/cmd/outboxd/tracing"
)

// How a span stands to the trace of who wrote the message: trace.parent.
const (
	traceLink  = "link"
	traceChild = "child"
)

// openTracing makes what exports spans, nil where the environment asks for none. What it asks for in vain is a warning: no
// message waits for a trace.
func openTracing(ctx context.Context, env lookup, log *slog.Logger) (t *tracing.Tracing) {
	wanted, err := tracing.Wanted(env)
	if wanted {
		t, err = tracing.Open(ctx, builtFrom().Version, log)
	}
	if err != nil {
		log.Warn("no traces", "err", err)
	}
	return t
}

// traced is what spans tell of a destination.
func (l *loaded) traced(name string) tracing.Destination {
	d := l.config.Destinations[name]
	to := tracing.Destination{Name: name, Child: l.config.Trace.Parent == traceChild}
	switch {
	case d.Kafka != nil:
		to.System, to.Topic = "kafka", orElse(d.Kafka.Topic, defaultTopic)
		if len(d.Kafka.Brokers) == 1 {
			to.Server, to.Port = splitAddress(d.Kafka.Brokers[0])
		}
	case d.Webhook != nil:
		to.System = "webhook"
		if u, err := url.Parse(d.Webhook.URL); err == nil {
			to.Server, to.Port = u.Hostname(), portOf(u)
		}
	case d.Program != nil:
		to.System = "program"
	case d.Stdout != nil:
		to.System = "stdout"
	}
	return to
}

func portOf(u *url.URL) int {
	port, err := strconv.Atoi(u.Port())
	if err == nil {
		return port
	}
	return map[string]int{"http": 80, "https": 443}[u.Scheme]
}

func splitAddress(address string) (host string, port int) {
	host, text, _ := net.SplitHostPort(address)
	port, _ = strconv.Atoi(text) // checked with the configuration
	return host, port
}
