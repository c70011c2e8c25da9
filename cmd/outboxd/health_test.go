package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// probed asks a health made of a snapshot.
func probed(h *health, path string) int {
	recorder := httptest.NewRecorder()
	handler(newMetrics(config{}, build{}).registry, h).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	return recorder.Code
}

func TestHealth(t *testing.T) {
	t.Parallel()
	now := time.Now()
	working, stopping := func() error { return nil }, func() error { return http.ErrServerClosed }
	ticks := func(ago time.Duration) map[string]time.Time {
		return map[string]time.Time{"claim": now.Add(-ago), "renew": now}
	}
	open := []relay.DestinationState{{Name: "out", State: "open"}}
	for name, c := range map[string]struct {
		snapshot    *relay.Snapshot
		waits       string
		lease       time.Duration
		stopped     func() error
		live, ready int
	}{
		"waits for the database":      {waits: "the database does not answer", live: 200, ready: 503},
		"starting":                    {live: 200, ready: 503},
		"works":                       {snapshot: &relay.Snapshot{DatabaseSeen: now, Ticks: ticks(0)}, live: 200, ready: 200},
		"a destination is open":       {snapshot: &relay.Snapshot{DatabaseSeen: now, Ticks: ticks(0), Destinations: open}, live: 200, ready: 200},
		"the database went away":      {snapshot: &relay.Snapshot{DatabaseSeen: now.Add(-31 * time.Second), Ticks: ticks(0)}, live: 200, ready: 503},
		"never saw the database":      {snapshot: &relay.Snapshot{Ticks: ticks(0)}, live: 200, ready: 503},
		"a loop stands still":         {snapshot: &relay.Snapshot{DatabaseSeen: now, Ticks: ticks(61 * time.Second)}, live: 503, ready: 200},
		"a long lease has slow loops": {snapshot: &relay.Snapshot{DatabaseSeen: now, Ticks: ticks(61 * time.Second)}, lease: 10 * time.Minute, live: 200, ready: 200},
		"the outbox is another's":     {snapshot: &relay.Snapshot{DatabaseSeen: now, Ticks: ticks(0), Refused: "it is another's"}, live: 200, ready: 503},
		"stops":                       {snapshot: &relay.Snapshot{DatabaseSeen: now, Ticks: ticks(time.Hour)}, stopped: stopping, live: 200, ready: 503},
	} {
		h := &health{lease: c.lease, stopped: working}
		if c.stopped != nil {
			h.stopped = c.stopped
		}
		if c.snapshot != nil {
			snapshot := snapshotter(func() relay.Snapshot { return *c.snapshot })
			h.running.Store(&snapshot)
		}
		if c.waits != "" {
			h.waiting.Store(&c.waits)
		}
		if live, ready := probed(h, "/livez"), probed(h, "/readyz"); live != c.live || ready != c.ready {
			t.Errorf("%s: livez %d, readyz %d, want %d, %d", name, live, ready, c.live, c.ready)
		}
	}
}

// scrape returns what /metrics says.
func scrape(m *metrics) string {
	recorder := httptest.NewRecorder()
	handler(m.registry, &health{stopped: func() error { return nil }}).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return recorder.Body.String()
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	m := newMetrics(config{
		Destinations: map[string]destinationConfig{"out": {}},
		Routes: []routeConfig{
			{Match: "orders", To: "out", Types: map[string]policyConfig{"order_paid": {}, "invoice.*": {}}},
			{Match: "*", To: "out"},
		},
	}, build{Version: "1", Commit: "c", Go: "go"})
	m.registry.MustRegister(newGauges(&m.labels, func() relay.Snapshot {
		return relay.Snapshot{
			DatabaseSeen: time.Now(), Ticks: map[string]time.Time{"claim": time.Unix(5, 0)},
			Destinations: []relay.DestinationState{{Name: "out", State: "open", InFlight: 3, Limit: 8}},
		}
	}))
	for _, want := range []string{
		`outboxd_sends_total{destination="out",outcome="unsent",type="order_paid"} 0`,
		`outboxd_failed_total{destination="out",reason="lease_lost",type="other"} 0`,
		`outboxd_claimed_messages_total{routing_key="orders"} 0`, `outboxd_lapses_total{destination="out"} 0`, `outboxd_lease_lost_total{destination="out"} 0`,
		`outboxd_turned_back_total{cause="no_policy",type="order_paid"} 0`,
	} {
		if text := scrape(m); !strings.Contains(text, want+"\n") {
			t.Errorf("at the start: no %s", want)
		}
	}
	m.observe([]relay.Event{
		{Kind: relay.EventClaim, RoutingKey: "orders", Count: 7, Took: time.Millisecond},
		{Kind: relay.EventClaim, RoutingKey: "secret-of-a-row", Count: 2},
		{Kind: relay.EventSend, Destination: "out", Type: "order_paid", Outcome: relay.KindDone, Took: time.Second},
		{Kind: relay.EventSend, Destination: "out", Type: "secret-of-a-row", Outcome: relay.KindRetry, Class: "http_5xx"},
		{Kind: relay.EventSettle, Count: 2, Took: time.Millisecond},
		{Kind: relay.EventFinal, Destination: "out", Type: "order_paid", State: relay.Finished, Age: time.Minute},
		{Kind: relay.EventFinal, Destination: "out", Type: "invoice.x", State: relay.Failed, Reason: relay.Rejected},
		{Kind: relay.EventTurned, Destination: "out", Type: "order_paid", Class: "no_policy"},
		{Kind: relay.EventLost, Destination: "out"},
		{Kind: relay.EventLapse, Destination: "out", Count: 4, Relay: "dead"},
	})
	text := scrape(m)
	for _, want := range []string{
		`outboxd_claimed_messages_total{routing_key="orders"} 7`, `outboxd_claimed_messages_total{routing_key="other"} 2`,
		`outboxd_claim_duration_seconds_count 2`, `outboxd_settle_duration_seconds_count 1`,
		`outboxd_sends_total{destination="out",outcome="done",type="order_paid"} 1`,
		`outboxd_sends_total{destination="out",outcome="retry",type="other"} 1`,
		`outboxd_send_errors_total{destination="out",error_class="http_5xx"} 1`,
		`outboxd_send_duration_seconds_sum{destination="out",outcome="done",type="order_paid"} 1`,
		`outboxd_insert_to_done_seconds_sum{destination="out",type="order_paid"} 60`,
		`outboxd_failed_total{destination="out",reason="rejected",type="other"} 1`,
		`outboxd_turned_back_total{cause="no_policy",type="order_paid"} 1`, `outboxd_lease_lost_total{destination="out"} 1`, `outboxd_lapses_total{destination="out"} 4`,
		`outboxd_destination_state{destination="out",state="open"} 1`, `outboxd_destination_state{destination="out",state="ok"} 0`,
		`outboxd_in_flight{destination="out"} 3`, `outboxd_in_flight_limit{destination="out"} 8`, `outboxd_db_up 1`,
		`outboxd_loop_last_tick_timestamp_seconds{loop="claim"} 5`, `outboxd_build_info{commit="c",goversion="go",version="1"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(text, "secret-of-a-row") {
		t.Error("a row made a series")
	}
}
