package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/outboxd/outboxd/relay"
)

// gauges reads the relay's snapshot whenever somebody scrapes.
type gauges struct {
	snapshot func() relay.Snapshot

	destinationState, inFlight, limit, unrouted, databaseUp, lastTick *prometheus.Desc
}

func newGauges(snapshot func() relay.Snapshot) *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("outboxd_"+name, help, labels, nil)
	}
	return &gauges{
		snapshot:         snapshot,
		destinationState: desc("destination_state", "1 for the state that the destination is in.", "destination", "state"),
		inFlight:         desc("in_flight", "Sends under way of this relay.", "destination"),
		limit:            desc("in_flight_limit", "Sends of this relay that may be under way at once.", "destination"),
		unrouted:         desc("unrouted_messages", "Messages that are due and that no route takes; at least so many."),
		databaseUp:       desc("db_up", "1 if the database answered within 30 seconds."),
		lastTick:         desc("loop_last_tick_timestamp_seconds", "When a loop last went round.", "loop"),
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.destinationState, g.inFlight, g.limit, g.unrouted, g.databaseUp, g.lastTick} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	s := g.snapshot()
	for _, d := range s.Destinations {
		for _, state := range []string{"ok", "ramp", "open", "throttled", "standby", "paused"} {
			gauge(g.destinationState, oneIf(d.State == state), d.Name, state)
		}
		gauge(g.inFlight, float64(d.InFlight), d.Name)
		gauge(g.limit, float64(d.Limit), d.Name)
	}
	if s.Figures != nil && s.Figures.Fresh {
		gauge(g.unrouted, float64(s.Figures.Unrouted()))
	}
	gauge(g.databaseUp, oneIf(time.Since(s.DatabaseSeen) < databaseLimit))
	for loop, at := range s.Ticks {
		gauge(g.lastTick, float64(at.UnixMilli())/1000, loop)
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
