package main

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/outboxd/outboxd/relay"
)

// gauges reads the relay's snapshot whenever somebody scrapes.
type gauges struct {
	labels   *atomic.Pointer[labels]
	snapshot func() relay.Snapshot
	figures  figures

	destinationState, inFlight, limit, databaseUp, lastTick *prometheus.Desc
}

func newGauges(l *atomic.Pointer[labels], snapshot func() relay.Snapshot) *gauges {
	return &gauges{
		labels: l, snapshot: snapshot, figures: newFigures(),
		destinationState: desc("destination_state", "1 for the state that the destination is in.", "destination", "state"),
		inFlight:         desc("in_flight", "Sends under way of this relay.", "destination"),
		limit:            desc("in_flight_limit", "Sends of this relay that may be under way at once.", "destination"),
		databaseUp:       desc("db_up", "1 if the database answered within 30 seconds."),
		lastTick:         desc("loop_last_tick_timestamp_seconds", "When a loop last went round.", "loop"),
	}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("outboxd_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range slices.Concat([]*prometheus.Desc{g.destinationState, g.inFlight, g.limit, g.databaseUp, g.lastTick}, g.figures.all()) {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	s, l, to := g.snapshot(), g.labels.Load(), newSums()
	for _, d := range s.Destinations {
		name := bound(l.destinations, d.Name)
		for _, state := range states() {
			to.add(g.destinationState, oneIf(d.State == state), name, state)
		}
		to.add(g.inFlight, float64(d.InFlight), name)
		to.add(g.limit, float64(d.Limit), name)
	}
	to.add(g.databaseUp, oneIf(time.Since(s.DatabaseSeen) < databaseLimit))
	for loop, at := range s.Ticks {
		to.add(g.lastTick, seconds(at), loop)
	}
	if s.Figures != nil {
		g.figures.collect(l, s.Figures, to)
	}
	to.tell(out)
}

// seconds are a time as Prometheus has it.
func seconds(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.UnixMilli()) / 1000
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// sums are gauges, in which all that has the same labels comes together.
type sums struct {
	values map[gauge]float64
}

type gauge struct {
	*prometheus.Desc
	a, b, c string // the values of its labels, as many as it has
}

func newSums() sums { return sums{map[gauge]float64{}} }

func gaugeOf(d *prometheus.Desc, labels []string) gauge {
	padded := append(slices.Clone(labels), "", "", "")
	return gauge{d, padded[0], padded[1], padded[2]}
}

// add adds to what is told with these labels.
func (s sums) add(d *prometheus.Desc, value float64, labels ...string) {
	s.values[gaugeOf(d, labels)] += value
}

// most keeps the largest of what is told with these labels.
func (s sums) most(d *prometheus.Desc, value float64, labels ...string) {
	g := gaugeOf(d, labels)
	s.values[g] = max(s.values[g], value)
}

func (s sums) tell(out chan<- prometheus.Metric) {
	for g, value := range s.values {
		labels := slices.DeleteFunc([]string{g.a, g.b, g.c}, func(l string) bool { return l == "" })
		out <- prometheus.MustNewConstMetric(g.Desc, prometheus.GaugeValue, value, labels...)
	}
}
