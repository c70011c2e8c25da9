package relay_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// TestLife: from the INSERT to done, on two relays, each message sent once and no lease row left.
func TestLife(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{answer: func(_ context.Context, m *relay.Message) relay.Outcome {
			time.Sleep(10 * time.Millisecond)
			return relay.Done("at " + m.ID)
		}}
		ids := append(w.insert(500, "order_paid"), w.insert(500, "order_sent")...)
		w.start(w.config("a", sink))
		w.start(w.config("b", sink))
		w.untilAll(time.Minute, ids, relay.Finished)
		for _, id := range ids {
			row := w.table.Row(id)
			if sink.of(id) != 1 || row.Attempts != 1 || row.Lapses != 0 || row.Result != "at "+id {
				t.Fatalf("%d sends, %+v", sink.of(id), row)
			}
		}
		w.until(5*time.Second, "no lease row left", func() bool { return len(w.table.Leases()) == 0 })
	})
}

// TestDiscovery: a routing key that nobody named is found while the relay runs, and one without a route is left alone.
func TestDiscovery(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config("a", &recorder{})
		cfg.Routes[0].Match = "order*"
		w.start(cfg)
		time.Sleep(10 * time.Second)
		ids, others := w.insert(10, "order_new"), w.insert(10, "parcel")
		w.untilAll(3*time.Second, ids, relay.Finished)
		time.Sleep(time.Minute)
		if !w.all(others, relay.Pending) {
			t.Error("messages without a route were claimed")
		}
	})
}

// TestS04_RefusedMessageDoesNotHinderOthers: each try ends in a settlement, and the others go on.
func TestS04_RefusedMessageDoesNotHinderOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		bad := w.insert(1, "bad")[0]
		ids := w.insert(200, "good")
		sink := &recorder{answer: func(_ context.Context, m *relay.Message) relay.Outcome {
			if m.Type == "bad" {
				return relay.Retry("http_5xx", "500")
			}
			return relay.Done("")
		}}
		w.start(w.config("a", sink))
		w.start(w.config("b", sink))
		w.untilAll(2*time.Second, ids, relay.Finished)
		w.untilAll(time.Minute, []string{bad}, relay.Failed)
		row := w.table.Row(bad)
		if row.Reason != relay.Exhausted || row.Attempts != 3 || sink.of(bad) != 3 || len(w.table.Attempts(bad)) != 3 {
			t.Errorf("%d sends, %d recorded, %+v", sink.of(bad), len(w.table.Attempts(bad)), row)
		}
	})
}

// TestS13_Panic: a Sink that panics costs that message its budget, as something may have gone out, and nobody else.
func TestS13_Panic(t *testing.T) {
	inWorld(t, func(w *world) {
		ids := w.insert(30, "good")
		bad := w.insert(1, "bad")[0]
		sink := &recorder{answer: func(_ context.Context, m *relay.Message) relay.Outcome {
			if m.Type == "bad" {
				panic("nil map")
			}
			return relay.Done("")
		}}
		w.start(w.config("a", sink))
		w.untilAll(time.Second, ids, relay.Finished)
		w.untilAll(time.Minute, []string{bad}, relay.Failed)
		row := w.table.Row(bad)
		if row.Reason != relay.Unknowable || row.Attempts != 3 || !strings.Contains(row.LastError, "nil map") {
			t.Errorf("%+v", row)
		}
		w.untilAll(time.Second, w.insert(30, "good"), relay.Finished)
	})
}

// TestHeaders: an entry that is no string fails the message by name, and nothing goes out.
func TestHeaders(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{}
		id := w.table.Insert(relaytest.Seed{Type: "x", Headers: `{"tries":3}`})[0]
		w.start(w.config("a", sink))
		w.untilAll(time.Second, []string{id}, relay.Failed)
		row := w.table.Row(id)
		if row.Reason != relay.Rejected || row.LastError != `header "tries" is no string` || sink.of(id) != 0 {
			t.Errorf("%d sends, %+v", sink.of(id), row)
		}
	})
}

// TestAdmitted: what may not be sent is not, and waits or ends as relay/DESIGN.md, Admit says.
func TestAdmitted(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := &recorder{}
		cfg := w.config("a", sink)
		cfg.Routes[0].Types = map[string]relay.Policy{"order_*": {Versions: []int{1}}, "order_old": {}}
		ids := w.table.Insert(
			relaytest.Seed{Type: "x", Expires: -time.Second},
			relaytest.Seed{Type: "x", Expires: -time.Second, UnknownFor: time.Second},
			relaytest.Seed{Type: "x", Lapses: 4},
			relaytest.Seed{Type: "order_paid", SchemaVersion: 2},
			relaytest.Seed{Type: "order_old", SchemaVersion: 2},
		)
		w.start(cfg)
		time.Sleep(5 * time.Second)
		for i, want := range []struct {
			state  relay.State
			reason relay.Reason
			class  string
		}{
			{relay.Failed, relay.Expired, "expired"},
			{relay.Failed, relay.Unknowable, "expired"},
			{relay.Failed, relay.LeaseLost, "lapsed"},
			{relay.Pending, "", "no_policy"},
			{relay.Finished, "", ""},
		} {
			row := w.table.Row(ids[i])
			if row.State != want.state || row.Reason != want.reason || row.ErrorClass != want.class {
				t.Errorf("message %d: %+v, want %+v", i, row, want)
			}
		}
		if sink.all() != 1 {
			t.Errorf("%d sends, want 1", sink.all())
		}
	})
}

func TestNew_RefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	_, err := relay.New(relay.Config{Routes: []relay.Route{{Match: "*", To: "nowhere"}}, Lease: time.Millisecond, Destinations: []relay.Destination{{Name: "a"}, {Name: "a"}}})
	for _, want := range []string{"name is empty", "no database", "lease 1ms", `"nowhere" does not exist`, "used twice", "no sink"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}
