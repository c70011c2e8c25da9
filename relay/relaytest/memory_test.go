package relaytest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// memory is a Backend on a Table.
type memory struct{ *relaytest.Table }

func (m memory) Store(name string) relay.Database { return m.Table.Store(name) }

func (m memory) StoreOf(name, instance string) relay.Database { return m.Table.StoreOf(name, instance) }

func TestMemory(t *testing.T) {
	t.Parallel()
	relaytest.TestStore(t, func(*testing.T) relaytest.Backend { return memory{relaytest.NewTable()} })
}

func TestMemoryHasTheClockOfItsBubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := relaytest.NewTable()
		store := table.Store("a")
		id := table.Insert(relaytest.Seed{Type: "order_paid", Delay: time.Hour})[0]
		claim := func(lease relay.LeaseID) []relay.Claim {
			claims, err := store.Claim(t.Context(), lease, time.Minute, []relay.Quota{{RoutingKey: "order_paid", Limit: 1}})
			if err != nil {
				t.Fatal(err)
			}
			return claims
		}
		<-time.After(time.Hour - 1)
		if got := claim(1); len(got) != 0 {
			t.Fatalf("claimed %v before it was due", got)
		}
		<-time.After(1)
		if got := claim(2); len(got) != 1 || got[0].ID != id || got[0].Age != time.Hour {
			t.Fatalf("claimed %v, want message %s, an hour old", got, id)
		}
	})
}

func TestMemoryLosesASettlementOfADeletedMessage(t *testing.T) {
	t.Parallel()
	table := relaytest.NewTable()
	store := table.Store("a")
	id := table.Insert(relaytest.Seed{Type: "order_paid"})[0]
	claims, err := store.Claim(t.Context(), 1, time.Minute, []relay.Quota{{RoutingKey: "order_paid", Limit: 1}})
	if err != nil || len(claims) != 1 {
		t.Fatalf("claimed %v, %v", claims, err)
	}
	table.Delete(id)
	lost, err := store.Settle(t.Context(), []relay.Settlement{relay.Release(claims[0])})
	if err != nil || len(lost) != 1 || lost[0].Why != relay.Lost {
		t.Fatalf("Settle gave %v, %v, want one that is lost", lost, err)
	}
}

func TestMemoryKeepsTheLastBeat(t *testing.T) {
	t.Parallel()
	table := relaytest.NewTable()
	store := table.Store("a")
	for _, version := range []string{"1", "2"} {
		if err := store.Beat(t.Context(), relay.Beat{Version: version}); err != nil {
			t.Fatal(err)
		}
	}
	if b, ok := table.Beat("a"); !ok || b.Version != "2" {
		t.Fatalf("the beat is of version %q (there: %v), want 2", b.Version, ok)
	}
	if _, ok := table.Beat("b"); ok {
		t.Fatal("there is a beat of a relay that never beat")
	}
}
