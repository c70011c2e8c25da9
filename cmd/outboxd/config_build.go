package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/outboxd/outboxd/cmd/outboxd/tracing"
	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/sink/kafka"
	"github.com/outboxd/outboxd/relay/sink/stdout"
)

// parts is what a sink may be made with.
type parts struct {
	env   lookup
	out   io.Writer // of the stdout sink
	log   *slog.Logger
	trace *tracing.Tracing // nil: no spans
}

// buildRelay makes the relay's configuration, all but its database, log and observer. A secret that cannot be read is a
// mistake of the configuration. Nothing is connected to.
func buildRelay(l *loaded, p parts) (relay.Config, error) {
	if err := l.wantsWork(); err != nil {
		return relay.Config{}, err
	}
	rc := l.plan()
	host := hostName()
	rc.Name, rc.Host, rc.Version = orElse(l.config.Relay.Name, fmt.Sprintf("%s-%04x", host, rand.N(1<<16))), host, builtFrom().Version
	rc.MaxActive = l.config.Relay.MaxActive
	rc.Lease, rc.StopTimeout, rc.Instance = l.config.Relay.Lease, l.config.Relay.StopTimeout, l.config.Instance
	rc.Retention = l.config.Retention.keep()
	var failed error // of the last one: it has the mistakes of all
	for i := range rc.Destinations {
		sink, err := l.sink(rc.Destinations[i].Name, p)
		if err != nil {
			failed = err
			continue
		}
		rc.Destinations[i].Sink = p.trace.Sink(l.traced(rc.Destinations[i].Name), sink)
	}
	if failed != nil {
		return relay.Config{}, errors.Join(failed, closeSinks(rc))
	}
	return rc, nil
}

// hostName is also the pod's, in Kubernetes.
func hostName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		return "outboxd"
	}
	return host
}

// wantsWork refuses a configuration that is well written and has nothing to do.
func (l *loaded) wantsWork() error {
	switch c := l.config; {
	case len(c.Destinations) == 0:
		l.fail("destinations", "there is none; name one in the file, or set %s or %s", envBrokers, envURL)
	case len(c.Routes) == 0:
		l.fail("routes", `there is none, so nothing would be sent; add one, such as {match: "*", to: %s}`,
			slices.Sorted(maps.Keys(c.Destinations))[0])
	default:
		return nil
	}
	return &configError{file: l.file, problems: l.problems}
}

// sink makes the sink of a destination.
func (l *loaded) sink(name string, p parts) (relay.Sink, error) {
	switch d := l.config.Destinations[name]; {
	case d.Kafka != nil:
		return l.kafkaSink(name, d.Kafka, p)
	case d.Webhook != nil:
		return l.webhookSink(name, p)
	case d.Program != nil:
		return l.programSink(name, p)
	default:
		return stdout.New(p.out), nil
	}
}

func (l *loaded) kafkaSink(name string, k *kafkaConfig, p parts) (relay.Sink, error) {
	path := join("destinations", name) + ".kafka"
	c := k.sink()
	if k.SASL != nil {
		password, err := k.SASL.source().read(p.env)
		if err != nil {
			l.fail(path+".sasl", "password: %s", err)
			return nil, &configError{file: l.file, problems: l.problems}
		}
		c.SASL.Password = password.Reveal()
	}
	sink, err := kafka.New(c, p.log)
	if err != nil {
		l.fail(path, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		return nil, &configError{file: l.file, problems: l.problems}
	}
	return sink, nil
}

// longestTimeout is that of all policies of a destination.
func (l *loaded) longestTimeout(name string) (longest time.Duration) {
	for i := range l.config.Routes {
		r := &l.config.Routes[i]
		if r.To != name {
			continue
		}
		longest = max(longest, l.policy(r, "").Timeout)
		for kind := range r.Types {
			longest = max(longest, l.policy(r, kind).Timeout)
		}
	}
	return longest
}

// sink is the sink's configuration without the password.
func (k *kafkaConfig) sink() kafka.Config {
	c := kafka.Config{
		Brokers: k.Brokers, Topic: k.Topic, Insecure: k.Insecure, Version: k.Version, ClientID: k.ClientID,
		Compression: k.Compression, MaxMessageBytes: k.MaxMessageBytes, TombstoneOnEmpty: k.TombstoneOnEmpty,
	}
	if t := k.TLS; t != nil {
		c.TLS = &kafka.TLS{
			CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile, ServerName: t.ServerName,
			InsecureSkipVerify: t.InsecureSkipVerify,
		}
	}
	if s := k.SASL; s != nil {
		c.SASL = &kafka.SASL{Mechanism: s.Mechanism, Username: s.Username, TokenFile: s.TokenFile}
	}
	return c
}

// validateKafka lets the sink check its own settings, and gives each mistake its place in the file.
func (l *loaded) validateKafka(path string, k *kafkaConfig) {
	c := k.sink()
	if c.SASL != nil {
		c.SASL.Password = masked // it is somewhere; whether it can be read, the start says
	}
	l.failEach(path, "kafka.", c.Validate())
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// policy is the policy of a route, or of a type in it: what the type leaves out, the route says, then the destination,
// then the relay's defaults.
func (l *loaded) policy(r *routeConfig, kind string) relay.Policy {
	t, p := r.Types[kind], r.Policy
	versions := p.Versions
	if t.Versions != nil {
		versions = t.Versions
	}
	return relay.Policy{
		Budget:   orElse(t.Budget, p.Budget, relay.DefaultBudget),
		Timeout:  orElse(t.Timeout, p.Timeout, l.config.Destinations[r.To].sendTimeout()),
		Base:     orElse(t.Base, p.Base, relay.DefaultBase),
		Cap:      orElse(t.Cap, p.Cap, relay.DefaultCap),
		Versions: versions,
		Emit:     relay.Emit(r.emit(kind)),
	}
}

// sendPolicy is the policy as the relay holds a send to it: a program that did not end within its time-out has its grace.
func (l *loaded) sendPolicy(r *routeConfig, kind string) relay.Policy {
	p := l.policy(r, kind)
	if d := l.config.Destinations[r.To]; d.Program != nil {
		p.Timeout += d.Program.graceIn(l.config.Relay.Lease)
	}
	return p
}
