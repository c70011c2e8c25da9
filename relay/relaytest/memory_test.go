package relaytest_test

import (
	"testing"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// memory is a Backend on a Table.
type memory struct{ *relaytest.Table }

func (m memory) Store(name string) relay.Database { return m.Table.Store(name) }

func TestMemory(t *testing.T) {
	t.Parallel()
	relaytest.TestStore(t, func(*testing.T) relaytest.Backend { return memory{relaytest.NewTable()} })
}
