package main

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/outboxd/outboxd/relay"
)

// other stands for every type and routing key that the configuration does not name, so that no row can make a series.
const other = "other"

// metrics turns what the relay tells into series. Labels come from closed sets only.
type metrics struct {
	registry    *prometheus.Registry
	series      prometheus.Registerer // of registry; what it registers has the outbox's label, where there are several
	types       names
	routingKeys names
	classes     names
	reloaded    *reloadGauges

	sends, failed, sendErrors, turned, claimed *prometheus.CounterVec
	lost, lapses                               prometheus.Counter
	sendTook, untilDone                        *prometheus.HistogramVec
	claimTook, settleTook                      prometheus.Histogram
}

// newMetrics registers all series of the only outbox of a process.
func newMetrics(c config, b build) *metrics { return metricsIn(newRegistry(b), "", c) }

// newRegistry has the series of the process itself.
func newRegistry(b build) *prometheus.Registry {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "outboxd_build_info", Help: "What runs; always 1.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "goversion": b.Go},
	})
	info.Set(1)
	registry := prometheus.NewRegistry()
	registry.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// metricsIn registers all series of an outbox, with its name as a label, unless that is empty. Those whose labels are known
// from the configuration exist at 0 from the start: an alert on an increase sees the first one too.
func metricsIn(registry *prometheus.Registry, outbox string, c config) *metrics {
	m := &metrics{
		registry: registry, series: registry, reloaded: newReloadGauges(),
		sends:      counters("sends_total", "Sends by what they came to.", "type", "destination", "outcome"),
		failed:     counters("failed_total", "Messages that ended failed.", "type", "destination", "reason"),
		sendErrors: counters("send_errors_total", "Sends that were not done, by error class.", "destination", "error_class"),
		turned:     counters("turned_back_total", "Messages sent back before the send, to be looked at again after a tenth of their age.", "type", "cause"),
		claimed:    counters("claimed_messages_total", "Messages claimed.", "routing_key"),
		lost:       counter("lease_lost_total", "Settlements that found their message under another lease."),
		lapses:     counter("lapses_total", "Messages taken back from a dead lease."),
		sendTook:   histograms("send_duration_seconds", "How long a send took.", "type", "destination", "outcome"),
		untilDone:  histograms("insert_to_done_seconds", "From created_at to done.", "type", "destination"),
		claimTook:  histogram("claim_duration_seconds", "How long a claim took."),
		settleTook: histogram("settle_duration_seconds", "How long a settlement took."),
	}
	if outbox != "" {
		m.series = prometheus.WrapRegistererWith(prometheus.Labels{"outbox": outbox}, registry)
	}
	m.series.MustRegister(m.sends, m.failed, m.sendErrors, m.turned, m.claimed, m.lapses, m.lost, m.sendTook,
		m.untilDone, m.claimTook, m.settleTook, m.reloaded)
	m.start(c)
	return m
}

// start makes the series that the configuration names, after a reload those that are new.
func (m *metrics) start(c config) {
	m.claimed.WithLabelValues(other)
	for name := range c.Destinations {
		for _, class := range errorClasses() {
			m.classes.add(class)
			m.sendErrors.WithLabelValues(name, class)
		}
	}
	for _, r := range c.Routes {
		if !strings.HasSuffix(r.Match, "*") {
			m.routingKeys.add(r.Match)
			m.claimed.WithLabelValues(r.Match)
		}
		m.startType(r.To, other)
		for name := range r.Types {
			if !strings.HasSuffix(name, "*") {
				m.types.add(name)
				m.startType(r.To, name)
			}
		}
		for _, key := range r.policyKeys() {
			if e := r.emit(key); e.Type != "" {
				m.startEmitted(c, e)
			}
		}
	}
}

// startEmitted is of a type that the relay itself writes.
func (m *metrics) startEmitted(c config, e emitConfig) {
	if i := c.routeOf(orElse(e.AggregateType, e.Type)); i >= 0 {
		m.types.add(e.Type)
		m.startType(c.Routes[i].To, e.Type)
	}
}

func (m *metrics) startType(destination, kind string) {
	for _, outcome := range []relay.Kind{relay.KindDone, relay.KindRetry, relay.KindFail, relay.KindUnknown, relay.KindUnsent} {
		m.sends.WithLabelValues(kind, destination, string(outcome))
	}
	for _, reason := range []relay.Reason{
		relay.Exhausted, relay.Rejected, relay.TooLarge, relay.Expired, relay.LeaseLost,
		relay.Unknowable,
	} {
		m.failed.WithLabelValues(kind, destination, string(reason))
	}
	for _, cause := range []string{"no_policy", "paused"} {
		m.turned.WithLabelValues(kind, cause)
	}
}

// errorClasses are the codes that a send can have which was not done.
func errorClasses() []string {
	return []string{
		"timeout", "refused", "dns", "tls", "reset", "http_3xx", "http_4xx", "http_5xx", "throttled", "auth", "not_found",
		"too_large", "unroutable", "broker", "program", "invalid", other,
	}
}

// observe counts events. The relay calls it from several goroutines.
func (m *metrics) observe(events []relay.Event) {
	for _, e := range events {
		switch e.Kind {
		case relay.EventClaim:
			m.claimed.WithLabelValues(m.routingKeys.bound(e.RoutingKey)).Add(float64(e.Count))
			m.claimTook.Observe(e.Took.Seconds())
		case relay.EventSend:
			m.observeSend(e)
		case relay.EventSettle:
			m.settleTook.Observe(e.Took.Seconds())
		case relay.EventFinal:
			m.observeFinal(e)
		case relay.EventTurned:
			m.turned.WithLabelValues(m.types.bound(e.Type), e.Class).Inc()
		case relay.EventLost:
			m.lost.Inc()
		case relay.EventLapse:
			m.lapses.Add(float64(e.Count))
		}
	}
}

func (m *metrics) observeSend(e relay.Event) {
	kind, outcome := m.types.bound(e.Type), string(e.Outcome)
	m.sends.WithLabelValues(kind, e.Destination, outcome).Inc()
	m.sendTook.WithLabelValues(kind, e.Destination, outcome).Observe(e.Took.Seconds())
	if e.Outcome != relay.KindDone {
		m.sendErrors.WithLabelValues(e.Destination, m.classes.bound(e.Class)).Inc()
	}
}

func (m *metrics) observeFinal(e relay.Event) {
	kind := m.types.bound(e.Type)
	if e.State == relay.Failed {
		m.failed.WithLabelValues(kind, e.Destination, string(e.Reason)).Inc()
		return
	}
	m.untilDone.WithLabelValues(kind, e.Destination).Observe(e.Age.Seconds())
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "outboxd_" + name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "outboxd_" + name, Help: help}, labels)
}

// buckets are the classic ones, for those who do not scrape native histograms.
func buckets(name, help string) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: "outboxd_" + name, Help: help,
		Buckets:                     []float64{.001, .005, .01, .025, .1, .25, 1, 5, 10, 30, 60, 300},
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	}
}

func histograms(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(buckets(name, help), labels)
}

func histogram(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(buckets(name, help))
}
