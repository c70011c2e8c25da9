package relay_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// TestEmit: whatever makes a message final tells the application so, once, by a message that goes its own way.
func TestEmit(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(_ context.Context, m *relay.Message) relay.Outcome {
			switch m.Type {
			case "charge_bad":
				return relay.Fail(relay.Rejected, "http_4xx", "HTTP 422")
			case "charge_again":
				return relay.Retry("http_5xx", "HTTP 503")
			}
			return relay.Done("tx-7")
		}}
		told := &recorder{}
		cfg := w.config("a", sink)
		cfg.Destinations = append(cfg.Destinations, relay.Destination{Name: "results", Sink: told, Width: 1})
		cfg.Routes = []relay.Route{
			{Match: "charge_result", To: "results"},
			{
				Match: "*", To: "dest", Policy: relay.Policy{Budget: 2, Emit: relay.Emit{Type: "charge_result"}},
				Types: map[string]relay.Policy{"charge_quietly": {}},
			},
		}
		ids := w.table.Insert(
			relaytest.Seed{Type: "charge_order"}, relaytest.Seed{Type: "charge_bad"}, relaytest.Seed{Type: "charge_again"},
			relaytest.Seed{Type: "charge_late", Expires: -time.Second}, relaytest.Seed{Type: "charge_odd", Headers: `{"n": 1}`},
			relaytest.Seed{Type: "charge_quietly"}, relaytest.Seed{Type: "charge_never", Delay: time.Hour},
		)
		w.start(cfg)
		time.Sleep(time.Minute)
		w.order(relay.OpCancel, `{"type":"charge_never"}`)
		want := map[string]string{ids[0]: "done", ids[1]: "rejected", ids[2]: "exhausted", ids[3]: "expired", ids[4]: "rejected", ids[6]: "cancelled"}
		w.until(time.Minute, "all are told", func() bool { return told.all() == len(want) })
		w.stopAll()
		got := map[string]string{}
		for id, sends := range told.sends {
			var of struct{ ID, State, Reason string }
			if err := json.Unmarshal(w.table.Payload(id), &of); err != nil {
				t.Fatal(err)
			}
			if of.Reason == "" {
				of.Reason = of.State
			}
			got[of.ID] = of.Reason
			if sends != 1 {
				t.Errorf("%s is told %d times", of.ID, sends)
			}
		}
		if len(got) != len(want) {
			t.Errorf("told %v, want %v", got, want)
		}
		for id, reason := range want {
			if got[id] != reason {
				t.Errorf("of %s it is told %q, want %q", id, got[id], reason)
			}
		}
	})
}
