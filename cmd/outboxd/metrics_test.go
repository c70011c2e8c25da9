package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// newMetrics registers all series of the only outbox of a process.
func newMetrics(c config, b build) *metrics { return metricsIn(newRegistry(b), "", c) }

// emitting is a configuration in which billing's outcomes are told of by way of results.
func emitting() config {
	return config{
		Destinations: map[string]destinationConfig{"billing": {}, "events": {}},
		Routes: []routeConfig{
			{Match: "charges", To: "billing", Policy: policyConfig{Emit: &emitConfig{Type: "charge_result"}}, Types: map[string]policyConfig{
				"refund": {Emit: &emitConfig{Type: "refunded", AggregateType: "results"}}, "ping": {Emit: &emitConfig{}},
			}},
			{Match: "charge_result", To: "events"},
			{Match: "results", To: "events"},
		},
	}
}

// TestMetrics_Emitted: the types that the relay writes have their series from the start, at the destination that they go to,
// and no other type has.
func TestMetrics_Emitted(t *testing.T) {
	t.Parallel()
	text := scrape(newMetrics(emitting(), build{}))
	for line, want := range map[string]bool{
		`outboxd_sends_total{destination="events",outcome="done",type="charge_result"} 0`:  true,
		`outboxd_sends_total{destination="events",outcome="done",type="refunded"} 0`:       true,
		`outboxd_sends_total{destination="billing",outcome="done",type="refund"} 0`:        true,
		`outboxd_sends_total{destination="billing",outcome="done",type="charge_result"} 0`: false,
		`outboxd_sends_total{destination="events",outcome="done",type="ping"} 0`:           false,
		`outboxd_turned_back_total{cause="paused",type="charge_result"} 0`:                 true,
		`outboxd_turned_back_total{cause="no_policy",type="other"} 0`:                      true,
		`outboxd_send_errors_total{destination="billing",error_class="throttled"} 0`:       true,
		`outboxd_send_errors_total{destination="events",error_class="other"} 0`:            true,
	} {
		if strings.Contains(text, line+"\n") != want {
			t.Errorf("%t: %s", !want, line)
		}
	}
}

// TestMetrics_States: exactly one state of a destination is 1, and what no route takes is counted.
func TestMetrics_States(t *testing.T) {
	t.Parallel()
	states := []string{"ok", "ramp", "open", "throttled", "standby", "paused"}
	for _, state := range states {
		m := newMetrics(config{Destinations: map[string]destinationConfig{"out": {}}}, build{})
		m.registry.MustRegister(newGauges(&m.labels, func() relay.Snapshot {
			return relay.Snapshot{Figures: &relay.Figures{Fresh: true, Depths: []relay.Depth{{RoutingKey: "lost", Due: 42}}}, Destinations: []relay.DestinationState{{Name: "out", State: state}}}
		}))
		text := scrape(m)
		for _, s := range states {
			if line := fmt.Sprintf(`outboxd_destination_state{destination="out",state="%s"} %g`, s, oneIf(s == state)); !strings.Contains(text, line+"\n") {
				t.Errorf("%s: no %s", state, line)
			}
		}
		if !strings.Contains(text, "\noutboxd_unrouted_messages 42\n") {
			t.Error("what no route takes is not counted")
		}
	}
}

// kept counts the series of metrics, and adds up a counter's by the label type.
func kept(t *testing.T, m *metrics, counter string) (series int, byType map[string]float64) {
	t.Helper()
	byType = map[string]float64{}
	for line := range strings.SplitSeq(scrape(m), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		series++
		if found := typed.FindStringSubmatch(line); found != nil && strings.HasPrefix(line, counter+"{") {
			value, err := strconv.ParseFloat(found[2], 64)
			if err != nil {
				t.Fatal(err)
			}
			byType[found[1]] += value
		}
	}
	return series, byType
}

var typed = regexp.MustCompile(`type="([^"]*)".* (\S+)$`)

// flood sends messages of ten thousand types, which come to all ends there are at each destination.
func flood(m *metrics, destinations ...string) {
	for i := range 10_000 {
		name, outcome := fmt.Sprintf("type-%d", i), outcomes()[i%len(outcomes())]
		destination := destinations[i/len(outcomes())%len(destinations)]
		m.observe([]relay.Event{
			{Kind: relay.EventClaim, RoutingKey: name, Count: 1},
			{Kind: relay.EventSend, Destination: destination, RoutingKey: name, Type: name, Outcome: outcome, Class: name},
			{Kind: relay.EventFinal, Destination: destination, RoutingKey: name, Type: name, State: relay.Finished},
			{Kind: relay.EventFinal, Destination: destination, Type: name, State: relay.Failed, Reason: reasons()[i%len(reasons())]},
			{Kind: relay.EventTurned, Destination: destination, RoutingKey: name, Type: name, Class: causes()[i%len(causes())]},
			{Kind: relay.EventLost, Destination: destination},
			{Kind: relay.EventLapse, Destination: destination, Count: 1},
			{Kind: relay.EventOperation, Op: ops()[i%len(ops())], Result: results()[i%len(results())], Count: 1},
		})
	}
}

// flooded are figures of ten thousand types under ten thousand routing keys, and what they come to.
func flooded(destinations ...string) (f *relay.Figures, messages int) {
	age := time.Second
	f = &relay.Figures{Fresh: true, Totals: relay.Totals{InFlight: map[string]int{}, Failed: map[relay.FailedKind]int{}, Snapshot: &age}}
	for i := range 10_000 {
		name := fmt.Sprintf("type-%d", i)
		f.Depths = append(f.Depths, relay.Depth{RoutingKey: name, Type: name, Destination: destinations[i%len(destinations)], Pending: 3, Due: 2, Oldest: age, More: i%2 == 0})
		f.Totals.InFlight[name] = 3
		f.Totals.Failed[relay.FailedKind{Type: name, Reason: reasons()[i%len(reasons())]}] = 3
		messages += 3
	}
	return f, messages
}

// TestMetrics_Bounded: whatever rows and the configuration hold, there are fewer than 2,000 series, and nothing is lost.
func TestMetrics_Bounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config config
		named  int // of the types, that have series of their own at least
	}{
		"an ordinary one":           {emitting(), 2},
		"many types":                {naming(1, 1, 1000), 50},
		"types at several":          {naming(4, 8, 12), 12},
		"many routing keys":         {naming(1, 3000, 1), 0},
		"many destinations":         {naming(3000, 3000, 1), 0},
		"many of all":               {naming(300, 300, 300), 0},
		"as few as a beginner has":  {naming(1, 1, 1), 1},
		"nothing, of an empty file": {config{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMetrics(c.config, build{})
			n := namedBy(c.config)
			destinations := append(n.destinations, other)[:min(len(n.destinations)+1, 20)]
			figures, messages := flooded(destinations...)
			m.series.MustRegister(newGauges(&m.labels, func() relay.Snapshot {
				s := relay.Snapshot{Ticks: map[string]time.Time{}, Figures: figures}
				for _, name := range n.destinations {
					s.Destinations = append(s.Destinations, relay.DestinationState{Name: name, State: "ok"})
				}
				for i := range 10 {
					s.Ticks[fmt.Sprint("loop-", i)] = time.Now()
				}
				return s
			}))
			flood(m, destinations...)
			sends := 10_000
			for _, kind := range n.types {
				for _, destination := range n.destinations[:min(len(n.destinations), 20)] {
					for _, outcome := range outcomes() {
						sends++
						m.observe([]relay.Event{
							{Kind: relay.EventSend, Destination: destination, Type: kind, Outcome: outcome},
							{Kind: relay.EventFinal, Destination: destination, Type: kind, State: relay.Finished},
						})
					}
				}
			}
			series, sent := kept(t, m, "outboxd_sends_total")
			l := m.labels.Load()
			if series >= maxSeries || series > l.series() {
				t.Errorf("%d series, %d were expected at most", series, l.series())
			}
			total := 0.0
			for _, n := range sent {
				total += n
			}
			if total != float64(sends) || len(l.types) < c.named {
				t.Errorf("%g sends in series, %d were made; %d types have their own", total, sends, len(l.types))
			}
			if _, waiting := kept(t, m, "outboxd_messages"); waiting[other] != float64(2*messages) {
				t.Errorf("other has %g messages pending and in flight, want %d", waiting[other], 2*messages)
			}
			if _, failed := kept(t, m, "outboxd_failed_unresolved"); failed[other] != float64(messages) {
				t.Errorf("other has %g failed messages, want %d", failed[other], messages)
			}
			if words := l.folded(n); (words == "") != (len(l.types) == len(n.types) && !l.coarse && !l.plain) {
				t.Errorf("what has no series of its own is told as %q", words)
			}
		})
	}
}

// naming is a configuration of so many destinations, routing keys and types of each.
func naming(destinations, routingKeys, types int) config {
	c := config{Destinations: map[string]destinationConfig{}}
	for i := range destinations {
		c.Destinations[fmt.Sprint("to-", i)] = destinationConfig{}
	}
	for i := range routingKeys {
		r := routeConfig{Match: fmt.Sprint("key-", i), To: fmt.Sprint("to-", i%destinations), Types: map[string]policyConfig{}}
		for n := range types {
			r.Types[fmt.Sprint("kind-", n)] = policyConfig{}
		}
		c.Routes = append(c.Routes, r)
	}
	return c
}

// TestMetrics_Reload: new names have their series, counts of old ones go on, and reloads do not pile up series.
func TestMetrics_Reload(t *testing.T) {
	t.Parallel()
	m := newMetrics(naming(2, 2, 1), build{})
	send := func(kind string) {
		m.observe([]relay.Event{{Kind: relay.EventSend, Destination: "to-0", Type: kind, Outcome: relay.KindDone}})
	}
	send("kind-0")
	send("kind-1")
	m.start(naming(2, 2, 2))
	send("kind-1")
	if _, sent := kept(t, m, "outboxd_sends_total"); sent["kind-0"] != 1 || sent["kind-1"] != 1 || sent[other] != 1 {
		t.Errorf("after a reload with one more type the sends are %v", sent)
	}
	for i := range 50 {
		c := naming(2, 2, 0)
		for n := range c.Routes {
			c.Routes[n].Types = map[string]policyConfig{fmt.Sprint("reloaded-", i): {}}
		}
		m.start(c)
		send(fmt.Sprint("reloaded-", i))
	}
	if series, sent := kept(t, m, "outboxd_sends_total"); series >= maxSeries/2 || len(sent) != 2 || sent["reloaded-49"] != 1 {
		t.Errorf("after 50 reloads there are %d series, with sends %v", series, sent)
	}
}
