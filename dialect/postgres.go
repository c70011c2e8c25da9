package dialect

import (
	"math"
	"time"

	"github.com/outboxd/outboxd/relay"
)

var _ relay.Database = (*Postgres)(nil)

// Postgres is the Store of PostgreSQL 13 and later, and with it all that the engine needs from that database. It belongs
// to one relay, whose name it writes into its leases, and is safe for concurrent use. Every statement is short, READ
// COMMITTED and a transaction of its own; its error carries the statement's name and the SQLSTATE, and no value.
type Postgres struct {
	relay      string
	work       *runner // claims, loads, settlements, moves and looks
	keep       *runner // renewals and the like: few rows, which never wait behind the work
	watch      *watcher
	floors     floors
	unanswered unanswered
}

// postgresQueries are all statements of the Store by the names that errors and golden files give them.
func postgresQueries() map[string]string {
	return map[string]string{
		"claim":             postgresClaim,
		"claim_one":         postgresClaimOne,
		"held":              postgresHeld,
		"fence":             postgresFence,
		"pulse":             postgresPulse,
		"load":              postgresLoad,
		"settle_done":       postgresSettleDone,
		"settle_done_again": postgresSettleDoneAgain,
		"settle":            postgresSettle,
		"settle_again":      postgresSettleAgain,
		"unsettled":         postgresUnsettled,
		"renew":             postgresRenew,
		"finish":            postgresFinish,
		"watch":             postgresWatch,
		"take":              postgresTake,
		"move":              postgresMove,
		"move_left":         postgresMoveLeft,
		"orphans":           postgresOrphans,
		"adopt":             postgresAdopt,
		"routing_keys":      postgresRoutingKeys,
		"waiting":           postgresWaiting,
		"waiting_newest":    postgresWaitingNewest,
		"beat":              postgresBeat,
		"leave":             postgresLeave,
	}
}

// NewPostgres makes the Store of the relay of that name, whose leases have that length. The tables are looked at by the
// first call only. Close it before the DB.
func NewPostgres(db *DB, relayName string, lease time.Duration) (*Postgres, error) {
	queries := postgresQueries()
	for name, text := range queries {
		rendered, err := render(text, db.schema)
		if err != nil {
			return nil, err
		}
		queries[name] = rendered
	}
	// A call that has no answer after a third of the lease is given up, so that a renewal can be asked for again in time.
	limit := max(lease/3, time.Second)
	work := &runner{db: db, pool: db.work, queries: queries, limit: limit}
	keep := &runner{db: db, pool: db.keep, queries: queries, limit: limit}
	return &Postgres{relay: relayName, work: work, keep: keep, watch: &watcher{runner: keep}}, nil
}

// Close gives the connection of the watch back. The DB stays open.
func (p *Postgres) Close() error { return p.watch.close() }

// fromMicros reads a duration: they travel as microseconds, in both directions. The longest that Go knows is 292 years, and
// a table that came from elsewhere may hold dates of the year 1.
func fromMicros(us int64) time.Duration {
	const longest = math.MaxInt64 / int64(time.Microsecond)
	return time.Duration(min(max(us, -longest), longest)) * time.Microsecond
}
