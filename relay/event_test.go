package relay_test

import (
	"sync"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// heard counts what metrics hear, by kind and what else tells events apart.
type heard struct {
	mu     sync.Mutex
	counts map[relay.Event]int
}

func (h *heard) observe(events []relay.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range events {
		n := e.Count
		e.Count, e.Took, e.Age = 0, 0, 0
		h.counts[e] += n
		if e.Result != "" || n == 0 {
			h.counts[e]++
		}
	}
}

func (h *heard) of(e relay.Event) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counts[e]
}

// TestEvents: metrics hear of operations, of messages that are turned back for their version, and of lapses by destination.
func TestEvents(t *testing.T) {
	inWorld(t, func(w *world) {
		h := &heard{counts: map[relay.Event]int{}}
		cfg := w.config("a", &recorder{})
		cfg.Observe = h.observe
		cfg.Routes[0].Types = map[string]relay.Policy{"new": {Versions: []int{1}}}
		old := w.insert(2, "old")
		w.dead(7, relay.Quota{RoutingKey: "old", Limit: 2})
		w.table.Insert(relaytest.Seed{Type: "new", SchemaVersion: 2})
		w.start(cfg)
		w.untilAll(time.Minute, old, relay.Finished)
		w.order(relay.OpReplay, `{"state": "done", "type": "old"}`)
		w.order(relay.OpPause, `{"type": "other", "indefinitely": true}`)
		w.order(relay.OpReplay, `{"nothing": "known"}`)
		for what, c := range map[string]struct {
			event relay.Event
			least int
		}{
			"lapses":            {relay.Event{Kind: relay.EventLapse, Destination: "dest", Relay: "dead"}, 2},
			"turned back":       {relay.Event{Kind: relay.EventTurned, Destination: "dest", RoutingKey: "new", Type: "new", State: relay.Pending, Class: relay.CauseVersion}, 1},
			"replayed, applied": {relay.Event{Kind: relay.EventOperation, Op: relay.OpReplay, Result: relay.ResultApplied}, 3},
			"replay refused":    {relay.Event{Kind: relay.EventOperation, Op: relay.OpReplay, Result: relay.ResultRefused}, 1},
			"paused":            {relay.Event{Kind: relay.EventOperation, Op: relay.OpPause, Result: relay.ResultApplied}, 1},
		} {
			w.until(time.Minute, what, func() bool { return h.of(c.event) >= c.least })
		}
	})
}
