package main

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/outboxd/outboxd/relay"
)

// metrics turns what the relay tells into series. docs/metrics.md has all of them.
type metrics struct {
	registry *prometheus.Registry
	series   prometheus.Registerer // of registry; what it registers has the outbox's label, where there are several
	labels   atomic.Pointer[labels]
	reloaded *reloadGauges

	sends, failed, sendErrors, turned, claimed *prometheus.CounterVec
	lost, lapses, operations, operated         *prometheus.CounterVec
	sendTook, untilDone                        *prometheus.HistogramVec
	claimTook, settleTook                      prometheus.Histogram
}

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
	l := fit(namedBy(c))
	m := &metrics{
		registry: registry, series: registry, reloaded: newReloadGauges(),
		sends:      counters("sends_total", "Sends by what they came to.", "type", "destination", "outcome"),
		failed:     counters("failed_total", "Messages that ended failed.", "type", "destination", "reason"),
		sendErrors: counters("send_errors_total", "Sends that were not done, by error class.", "destination", "error_class"),
		turned:     counters("turned_back_total", "Messages sent back before the send, to be looked at again after a tenth of their age.", "type", "cause"),
		claimed:    counters("claimed_messages_total", "Messages claimed.", "routing_key"),
		lost:       counters("lease_lost_total", "Settlements that found their message under another lease.", "destination"),
		lapses:     counters("lapses_total", "Messages taken back from a dead lease.", "destination"),
		operations: counters("operations_total", "Operations that this relay finished.", "op", "result"),
		operated:   counters("operation_messages_total", "Messages that operations changed by this relay.", "op"),
		sendTook:   histograms(l.plain, "send_duration_seconds", "How long a send took.", "type", "destination", "outcome"),
		untilDone:  histograms(l.plain, "insert_to_done_seconds", "From created_at to done, by the database's clock.", "type", "destination"),
		claimTook:  histogram("claim_duration_seconds", "How long a claim took."),
		settleTook: histogram("settle_duration_seconds", "How long a settlement took."),
	}
	if outbox != "" {
		m.series = prometheus.WrapRegistererWith(prometheus.Labels{"outbox": outbox}, registry)
	}
	for _, c := range m.collectors() {
		m.series.MustRegister(c)
	}
	m.series.MustRegister(m.claimTook, m.settleTook, m.reloaded)
	m.begin(l)
	return m
}

// resettable is a collector whose series can all be taken away.
type resettable interface {
	prometheus.Collector
	Reset()
}

// collectors are those with labels.
func (m *metrics) collectors() []resettable {
	return []resettable{
		m.sends, m.failed, m.sendErrors, m.turned, m.claimed, m.lost, m.lapses, m.operations, m.operated, m.sendTook, m.untilDone,
	}
}

// start makes the series that a reloaded configuration names. Where other names come to have the label other, all counts
// begin anew: else there would be more series with each reload.
func (m *metrics) start(c config) {
	was := m.labels.Load()
	l := fit(namedBy(c), was.plain)
	if !l.holds(was) {
		for _, c := range m.collectors() {
			c.Reset()
		}
	}
	m.begin(l)
}

func (m *metrics) begin(l *labels) {
	m.labels.Store(l)
	m.claimed.WithLabelValues(other)
	m.lapses.WithLabelValues(other) // of messages that no route takes
	for key := range l.routingKeys {
		m.claimed.WithLabelValues(key)
	}
	for destination := range l.destinations {
		for _, class := range errorClasses() {
			m.sendErrors.WithLabelValues(destination, class)
		}
		m.lost.WithLabelValues(destination)
		m.lapses.WithLabelValues(destination)
	}
	for p := range l.pairs {
		for _, outcome := range outcomes() {
			m.sends.WithLabelValues(p.kind, p.destination, string(outcome))
		}
		for _, reason := range reasons() {
			m.failed.WithLabelValues(p.kind, p.destination, string(reason))
		}
		for _, cause := range causes() {
			m.turned.WithLabelValues(p.kind, cause)
		}
	}
	for _, op := range ops() {
		m.operated.WithLabelValues(string(op))
		for _, result := range results() {
			m.operations.WithLabelValues(string(op), result)
		}
	}
}

// observe counts events. The relay calls it from several goroutines.
func (m *metrics) observe(events []relay.Event) {
	l := m.labels.Load()
	for _, e := range events {
		switch e.Kind {
		case relay.EventClaim:
			m.claimed.WithLabelValues(bound(l.routingKeys, e.RoutingKey)).Add(float64(e.Count))
			m.claimTook.Observe(e.Took.Seconds())
		case relay.EventSend:
			m.observeSend(l, e)
		case relay.EventSettle:
			m.settleTook.Observe(e.Took.Seconds())
		case relay.EventFinal:
			m.observeFinal(l, e)
		case relay.EventTurned:
			m.turned.WithLabelValues(bound(l.types, e.Type), e.Class).Inc()
		case relay.EventLost:
			m.lost.WithLabelValues(bound(l.destinations, e.Destination)).Inc()
		case relay.EventLapse:
			m.lapses.WithLabelValues(bound(l.destinations, e.Destination)).Add(float64(e.Count))
		case relay.EventOperation:
			m.operated.WithLabelValues(string(e.Op)).Add(float64(e.Count))
			if e.Result != "" {
				m.operations.WithLabelValues(string(e.Op), e.Result).Inc()
			}
		}
	}
}

func (m *metrics) observeSend(l *labels, e relay.Event) {
	p, outcome := l.pair(e.Type, e.Destination), string(e.Outcome)
	m.sends.WithLabelValues(p.kind, p.destination, outcome).Inc()
	if e.Outcome != relay.KindDone {
		m.sendErrors.WithLabelValues(p.destination, l.class(e.Class)).Inc()
	}
	p = l.timed(e.Type, e.Destination)
	m.sendTook.WithLabelValues(p.kind, p.destination, outcome).Observe(e.Took.Seconds())
}

func (m *metrics) observeFinal(l *labels, e relay.Event) {
	if e.State == relay.Failed {
		p := l.pair(e.Type, e.Destination)
		m.failed.WithLabelValues(p.kind, p.destination, string(e.Reason)).Inc()
		return
	}
	p := l.timed(e.Type, e.Destination)
	m.untilDone.WithLabelValues(p.kind, p.destination).Observe(e.Age.Seconds())
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "outboxd_" + name, Help: help}, labels)
}

// buckets are native ones, and unless it is plain the classic ones for those who do not scrape these.
func buckets(plain bool, name, help string) prometheus.HistogramOpts {
	o := prometheus.HistogramOpts{
		Name: "outboxd_" + name, Help: help,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	}
	if !plain {
		o.Buckets = []float64{.001, .005, .01, .025, .1, .25, 1, 5, 10, 30, 60, 300}
	}
	return o
}

func histograms(plain bool, name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(buckets(plain, name, help), labels)
}

func histogram(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(buckets(false, name, help))
}
