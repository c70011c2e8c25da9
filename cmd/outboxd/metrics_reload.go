package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// reloadGauges tell of the last time that the configuration was read: the start, or a reload since.
type reloadGauges struct{ success, at prometheus.Gauge }

func newReloadGauges() *reloadGauges {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "outboxd_config_last_reload_" + name, Help: help})
	}
	g := &reloadGauges{
		success: gauge("success", "1 if the configuration was taken when it was last read, 0 if that reload was refused."),
		at:      gauge("success_timestamp_seconds", "When a configuration was last taken."),
	}
	g.tell(nil)
	return g
}

// tell says what became of a start or a reload.
func (g *reloadGauges) tell(err error) {
	g.success.Set(oneIf(err == nil))
	if err == nil {
		g.at.Set(float64(time.Now().UnixMilli()) / 1000)
	}
}

// Describe implements prometheus.Collector.
func (g *reloadGauges) Describe(out chan<- *prometheus.Desc) {
	g.success.Describe(out)
	g.at.Describe(out)
}

// Collect implements prometheus.Collector.
func (g *reloadGauges) Collect(out chan<- prometheus.Metric) {
	g.success.Collect(out)
	g.at.Collect(out)
}
