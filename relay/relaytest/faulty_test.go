package relaytest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// transparent is a Backend whose Stores are behind a Faulty that is told nothing.
type transparent struct{ *relaytest.Table }

func (m transparent) Store(name string) relay.Database {
	return m.StoreOf(name, "")
}

func (m transparent) StoreOf(name, instance string) relay.Database {
	return &relaytest.Faulty{Next: m.Table.StoreOf(name, instance)}
}

func TestFaultyToldNothing(t *testing.T) {
	t.Parallel()
	relaytest.TestStore(t, func(*testing.T) relaytest.Backend { return transparent{relaytest.NewTable()} })
}

func TestFaultyFailsBeforeAndLosesAfter(t *testing.T) {
	t.Parallel()
	fault := errors.New("connection lost")
	only := func(_ context.Context, call relaytest.Call) error {
		if call == relaytest.CallClaim {
			return fault
		}
		return nil
	}
	for name, tt := range map[string]struct {
		faulty relaytest.Faulty
		state  relay.State
	}{
		"before": {relaytest.Faulty{BeforeFunc: only}, relay.Pending},
		"after":  {relaytest.Faulty{AfterFunc: only}, relay.InFlight},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := relaytest.NewTable()
			id := table.Insert(relaytest.Seed{Type: "order_paid"})[0]
			tt.faulty.Next = table.Store("a")
			claims, err := tt.faulty.Claim(t.Context(), 1, time.Second, []relay.Quota{{RoutingKey: "order_paid", Limit: 1}})
			if !errors.Is(err, fault) || claims != nil {
				t.Errorf("Claim gave %v, %v, want only the fault", claims, err)
			}
			if got := table.Row(id).State; got != tt.state {
				t.Errorf("the message is %s, want %s", got, tt.state)
			}
			if _, err := tt.faulty.Renew(t.Context(), nil); err != nil {
				t.Errorf("Renew, which was told nothing: %v", err)
			}
		})
	}
}
