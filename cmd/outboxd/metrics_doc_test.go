package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// everything makes all series that there can be, and gives their types and labels by name.
func everything(t *testing.T) map[string]string {
	t.Helper()
	m := newMetrics(emitting(), build{Version: "1", Commit: "c", Go: "go"})
	age := time.Second
	m.series.MustRegister(newGauges(&m.labels, func() relay.Snapshot {
		return relay.Snapshot{
			Ticks: map[string]time.Time{"claim": time.Now()}, Destinations: []relay.DestinationState{{Name: "billing"}},
			Figures: &relay.Figures{Fresh: true, Totals: relay.Totals{Snapshot: &age}},
		}
	}))
	m.observe([]relay.Event{
		{Kind: relay.EventSend, Destination: "billing", Outcome: relay.KindDone}, {Kind: relay.EventFinal, Destination: "billing", State: relay.Finished},
	})
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]string{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "outboxd_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		slices.Sort(labels)
		series[f.GetName()] = strings.ToLower(f.GetType().String()) + " " + strings.Join(labels, ",")
	}
	return series
}

// TestMetrics_Documented: docs/metrics.md has all metrics, with their types and labels, and no others.
func TestMetrics_Documented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(outboxd_[a-z_]+)` \\| ([a-z]+) \\|([^|]*)\\|").FindAllStringSubmatch(string(page), -1) {
		labels := regexp.MustCompile("[a-z_]+").FindAllString(row[3], -1)
		slices.Sort(labels)
		documented[row[1]] = row[2] + " " + strings.Join(labels, ",")
	}
	is := everything(t)
	for name, what := range is {
		if documented[name] != what {
			t.Errorf("%s is a %s, and documented as %q", name, what, documented[name])
		}
	}
	for name := range documented {
		if is[name] == "" {
			t.Errorf("%s is documented and does not exist", name)
		}
	}
}
