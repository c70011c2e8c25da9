package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/relay"
)

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
		m := newMetrics(config{}, build{})
		m.registry.MustRegister(newGauges(func() relay.Snapshot {
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

// TestMetrics_Bounded: whatever rows hold, the series are those of the configuration.
func TestMetrics_Bounded(t *testing.T) {
	t.Parallel()
	m := newMetrics(emitting(), build{})
	outcomes := []relay.Kind{relay.KindDone, relay.KindRetry, relay.KindFail, relay.KindUnknown, relay.KindUnsent}
	for i := range 100_000 {
		name := fmt.Sprintf("type-%d", i)
		m.observe([]relay.Event{
			{Kind: relay.EventClaim, RoutingKey: name, Count: 1},
			{Kind: relay.EventSend, Destination: "billing", RoutingKey: name, Type: name, Outcome: outcomes[i%len(outcomes)], Class: name},
			{Kind: relay.EventFinal, Destination: "billing", RoutingKey: name, Type: name, State: relay.Finished},
			{Kind: relay.EventFinal, Destination: "billing", RoutingKey: name, Type: name, State: relay.Failed, Reason: relay.Rejected},
			{Kind: relay.EventTurned, Destination: "billing", RoutingKey: name, Type: name, Class: "no_policy"},
		})
	}
	series := 0
	for line := range strings.SplitSeq(scrape(m), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			series++
		}
	}
	if series >= 2000 {
		t.Errorf("%d series", series)
	}
}
