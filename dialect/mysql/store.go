package mysql

import (
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

var _ relay.Database = (*Store)(nil)

// Store is the Store of MySQL 8.0.17 and MariaDB 10.6 and later, and with it all that the engine needs from that database.
// It belongs to one relay, whose name it writes into its leases, and is safe for concurrent use. Everything is READ
// COMMITTED but the look for a floor, in one statement or a short transaction; an error carries the statement's name and
// the server's code, and no value.
//
// Rows are locked by seq, ascending, so that two sessions never wait for each other in a ring. Lists travel as one JSON
// array, which JSON_TABLE makes a table of: the text of each statement is always the same, and STRAIGHT_JOIN reads the
// rows in the order of the list, each by its key.
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
		"claim":                  sqlClaim,
		"claim_one":              sqlClaimOne,
		"claim_lease":            sqlClaimLease,
		"claim_take":             sqlClaimTake,
		"floor":                  sqlFloor,
		"held":                   sqlHeld,
		"load":                   sqlLoad,
		"settle_done":            sqlSettleDone,
		"settle":                 sqlSettle,
		"record":                 sqlRecord,
		"tell":                   sqlTell,
		"lock":                   sqlLock,
		"fates":                  sqlFates,
		"renew":                  sqlRenew,
		"renewed":                sqlRenewed,
		"finish":                 sqlFinish,
		"watch":                  sqlWatch,
		"take":                   sqlTake,
		"take_lock":              sqlTakeLock,
		"move":                   sqlMove,
		"move_left":              sqlMoveLeft,
		"lapse":                  sqlLapse,
		"lapse_record":           sqlLapseRecord,
		"orphans":                sqlOrphans,
		"remove_page":            sqlRemovePage,
		"remove_held":            sqlRemoveHeld,
		"remove_lock":            sqlRemoveLock,
		"remove_messages":        sqlRemoveMessages,
		"remove_attempts_page":   sqlRemoveAttemptsPage,
		"remove_attempts":        sqlRemoveAttempts,
		"remove_operations_page": sqlRemoveOperationsPage,
		"remove_corrections":     sqlRemoveCorrections,
		"remove_operation":       sqlRemoveOperation,
		"routing_keys":           sqlRoutingKeys,
		"waiting":                sqlWaiting,
		"waiting_newest":         sqlWaitingNewest,
		"suspects":               sqlSuspects,
		"suspects_newest":        sqlSuspectsNewest,
		"beat":                   sqlBeat,
		"breakers":               sqlBreakers,
		"free_breakers":          sqlFreeBreakers,
		"show":                   sqlShow,
		"dead":                   sqlDead,
		"forget_breaker":         sqlForgetBreaker,
		"forget_relay":           sqlForgetRelay,
		"leave":                  sqlLeave,
		"leave_breakers":         sqlLeaveBreakers,
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
	work := &runner{pool: d.work, queries: queries, limit: limit}
	keep := &runner{pool: d.keep, queries: queries, limit: limit}
	operator := &dialect.Operator{Inspector: d.Inspector, Relay: relayName, Own: instance}
	return &Store{Operator: operator, Gauger: dialect.NewGauger(d.Inspector), relay: relayName, work: work, keep: keep, watch: &watcher{runner: keep}}, nil
}

// Close gives the connection of the watch back. The DB stays open.
func (s *Store) Close() error { return s.watch.close() }
