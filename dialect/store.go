package dialect

import "github.com/outboxd/outboxd/relay"

// Store is an engine's part in one relay, whose name it writes into its leases. Close it before its DB.
type Store interface {
	relay.Database
	Close() error
}
