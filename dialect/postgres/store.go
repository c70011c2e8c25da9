package postgres

import (
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

var _ relay.Database = (*Store)(nil)

// Store is that of PostgreSQL 13 and later, and with it all that the engine needs from that database. It belongs
// to one relay, whose name it writes into its leases, and is safe for concurrent use. Every statement is short, READ
// COMMITTED and a transaction of its own; its error carries the statement's name and the SQLSTATE, and no value.
type Store struct {
	*dialect.Operator
	*dialect.Gauger

	relay      string
	work       *runner // claims, loads, settlements, moves and looks
	keep       *runner // renewals and the like: few rows, which never wait behind the work
	watch      *watcher
	floors     floors
	unanswered dialect.Unanswered
}

// sqlQueries are all statements of the Store by the names that errors and golden files give them.
func sqlQueries() map[string]string {
	return map[string]string{
		"claim":             sqlClaim,
		"claim_one":         sqlClaimOne,
		"held":              sqlHeld,
		"fence":             sqlFence,
		"pulse":             sqlPulse,
		"load":              sqlLoad,
		"settle_done":       sqlSettleDone,
		"settle_done_again": sqlSettleDoneAgain,
		"settle":            sqlSettle,
		"settle_again":      sqlSettleAgain,
		"settle_told":       sqlSettleTold,
		"unsettled":         sqlUnsettled,
		"renew":             sqlRenew,
		"finish":            sqlFinish,
		"watch":             sqlWatch,
		"take":              sqlTake,
		"move":              sqlMove,
		"move_left":         sqlMoveLeft,
		"orphans":           sqlOrphans,
		"adopt":             sqlAdopt,
		"remove_messages":   sqlRemoveMessages,
		"remove_attempts":   sqlRemoveAttempts,
		"remove_operations": sqlRemoveOperations,
		"routing_keys":      sqlRoutingKeys,
		"waiting":           sqlWaiting,
		"waiting_newest":    sqlWaitingNewest,
		"beat":              sqlBeat,
		"show":              sqlShow,
		"leave":             sqlLeave,
	}
}

// Store makes the Store of the relay of that name and instance, "" for none, whose leases have that length. The tables are looked at by the first call
// only. Close it before the DB.
func (d *DB) Store(relayName, instance string, lease time.Duration) (dialect.Store, error) {
	return d.store(relayName, instance, lease)
}

func (d *DB) store(relayName, instance string, lease time.Duration) (*Store, error) {
	queries := sqlQueries()
	for name, text := range queries {
		rendered, err := render(text, d.schema)
		if err != nil {
			return nil, err
		}
		queries[name] = rendered
	}
	// A call that has no answer after a third of the lease is given up, so that a renewal can be asked for again in time.
	limit := max(lease/3, time.Second)
	work := &runner{db: d, pool: d.work, queries: queries, limit: limit}
	keep := &runner{db: d, pool: d.keep, queries: queries, limit: limit}
	operator := &dialect.Operator{Inspector: d.Inspector, Relay: relayName, Own: instance}
	return &Store{Operator: operator, Gauger: dialect.NewGauger(d.Inspector), relay: relayName, work: work, keep: keep, watch: &watcher{runner: keep}}, nil
}

// Close gives the connection of the watch back. The DB stays open.
func (p *Store) Close() error { return p.watch.close() }
