package relay

import (
	"context"
	"time"
)

// Store is what the engine needs from a database to walk messages through their life. All its statements are short and
// READ COMMITTED; an error is a database fault that says nothing about any message, and the caller tries again. Every
// implementation passes relaytest.TestStore. A Store belongs to one relay, whose name it writes into its leases, and is
// safe for concurrent use.
type Store interface {
	// Claim takes due messages: at most Limit for each quota, in order of due_at, and makes one lease row for them. None
	// due: no lease row, and an empty answer. Asked again under the same lease, because the answer was lost, it returns
	// what that lease still holds, or makes the claim if the first asking came to nothing. It takes nothing, and fails with
	// ErrForeign where it would, if the outbox on the very connection that it runs on is not of the Store's instance.
	Claim(ctx context.Context, lease LeaseID, length time.Duration, quotas []Quota) ([]Claim, error)
	// Load reads what is to be sent, without locks. A message that does not come back is no longer ours.
	Load(ctx context.Context, claims []Claim) ([]Message, error)
	// Settle writes each settlement whose message is still in flight under its lease, and returns those that were not
	// written because the row is locked or refused or the lease was lost. A message already settled under its lease is neither. No
	// message may occur twice.
	Settle(ctx context.Context, settlements []Settlement) ([]Unsettled, error)
	// Renew moves renewed_at of each lease to the database's now. lost holds those that are gone or in other hands.
	Renew(ctx context.Context, leases []LeaseID) (lost []LeaseID, err error)
	// Finish deletes the rows of leases under which nothing is in flight.
	Finish(ctx context.Context, leases []LeaseID) error
}

// Quota asks for messages of one routing key. Messages that never lapsed and those that lapsed once are claimed apart, so
// Lapses is 0 or 1; one that lapsed more often, or a breaker's probe, is asked for by its ID, whatever its lapses.
type Quota struct {
	RoutingKey string
	Lapses     int
	Limit      int    // 1 or more
	ID         string // not empty: this message alone, if it is due and not locked
}

// Scout reads what waits, without claiming it and without locks.
type Scout interface {
	// RoutingKeys returns the routing keys of which a message is pending, by a loose index scan.
	RoutingKeys(ctx context.Context) ([]string, error)
	// Waiting returns due messages of the routing keys, oldest due first, at most Limit for each routing key: those that
	// lapsed at most once, or with Suspects only those that lapsed more often.
	Waiting(ctx context.Context, look Look) ([]Waiting, error)
}

// Look says which due messages Waiting is to return.
type Look struct {
	RoutingKeys []string
	Suspects    bool // only messages that lapsed more than once
	Newest      bool // the last due first, instead of the oldest
	Limit       int
}

// Waiting is a due message as Scout sees it.
type Waiting struct {
	ID, RoutingKey string
	Attempts       int
}

// Reclaimer takes back what other relays left. Which lease is dead the engine decides, by watching; no wall clock does.
type Reclaimer interface {
	// Watch returns all leases. Era names the server and the connection that answered: a watch over two eras proves
	// nothing, since a server after a failover may show an older renewal.
	Watch(ctx context.Context) (era string, leases []Lease, err error)
	// Take puts the lease into our hands if it is still as it was watched, and returns whose it was; ok is false where
	// it was renewed, finished, taken by another, or is locked.
	Take(ctx context.Context, lease Lease) (was string, ok bool, err error)
	// Move makes pending, at the front, what is in flight under a lease that we took and that nobody locks, and returns
	// it. left tells that something is in flight under it still: renew it, and move again shortly.
	Move(ctx context.Context, lease LeaseID, was string) (moved []Moved, left bool, err error)
	// Orphans looks at one page of messages after the id in order of the key, and makes pending those in flight whose
	// lease row does not exist. next is "" at the end of the table.
	Orphans(ctx context.Context, after string) (moved []Moved, next string, err error)
}

// Moved is a message that was taken back from a lease.
type Moved struct {
	ID         string
	RoutingKey string `json:"routing_key"`
}

// Lease is a lease row as Watch sees it. Renewed is the database's own text, to be compared and handed back, never
// parsed.
type Lease struct {
	ID      LeaseID
	Relay   string
	Renewed string
	Length  time.Duration
}

// Presence tells others that this relay is alive and how its destinations are.
type Presence interface {
	// Beat writes the relay's row in outbox_relay, and then, for people to see, the states of its breakers in outbox_control. An
	// error says that the row was not written. Breakers that could not be, since others hold their rows, are no error: they
	// are left for the next beat, as are rows of relays that are dead since long.
	Beat(ctx context.Context, p Beat) error
	// Peers returns all relays that have told of themselves and did not leave, this one and dead ones among them.
	Peers(ctx context.Context) ([]Peer, error)
	// Leave removes what Beat wrote, at a clean stop.
	Leave(ctx context.Context) error
}

// Peer is a relay as Peers sees it. Seen is when it last told of itself: the database's own text, to be compared, never
// parsed.
type Peer struct {
	Name, Seen   string
	Destinations []string
}

// Beat is what a relay tells of itself.
type Beat struct {
	Host, Version, ConfigHash string
	Instance                  string   // Config.Instance
	Destinations              []string // that it serves: none while the outbox belongs to another instance
	Breakers                  []BreakerState
}

// BreakerState is a breaker as people see it.
type BreakerState struct {
	Destination string
	RoutingKey  string // "" where the breaker is the whole destination's
	State       string // ok, ramp, open, throttled (the destination asked to be left alone) or standby (other relays have its places)
	Width       int    // how many sends at once this relay may have under way now
	Failures    int    // outcomes in a row that are retry, unknown or unsent
	LastError   string // class and text of the last of these
}

// Operator applies what people asked for in outbox_operation. What becomes of a message the engine decides, by Judge.
type Operator interface {
	// Operations returns the operations that are not applied, those that steer first, then in the order in which they were
	// asked for; only so many at once.
	Operations(ctx context.Context) ([]Operation, error)
	// Operate makes one step of an operation, in one transaction that holds its row: at most so many messages are changed
	// as judge says, and how far it came is written with them. One that cannot be, by its Err, is applied with no effect.
	Operate(ctx context.Context, o Operation, judge func(Candidate) Verdict, most int) (Step, error)
	// Pauses returns what is paused, also where its time is over and nobody has resumed it yet.
	Pauses(ctx context.Context) ([]Pause, error)
	// Ask inserts an operation, unless there is one of its id already.
	Ask(ctx context.Context, o Operation) error
}

// Gauger reads what is told of the whole table, and keeps who tells it. What it reads is bounded by an index or by the
// messages that it looks at, never counted.
type Gauger interface {
	// Depths looks at the pending messages of routing keys, at most limit of each number of lapses, the first due first. A
	// routing key and type of which it sees none has no Depth.
	Depths(ctx context.Context, routingKeys []string, limit int) ([]Depth, error)
	// Totals looks at what is in flight under leases and at what failed last and is not resolved, at most limit messages of
	// each, and at the leases.
	Totals(ctx context.Context, limit int) (Totals, error)
	// SwapDuty makes a duty, a row of outbox_control, what want says if it still is as seen, and returns what it then is. One
	// that has no row yet is of no relay and of epoch 0. With want as seen it only looks.
	SwapDuty(ctx context.Context, seen, want Duty) (Duty, error)
}

// Depth is what waits of a routing key and type.
type Depth struct {
	RoutingKey, Type string
	Destination      string        // by its route; "": it has none. The engine sets it.
	Pending          int           // at least so many
	Due              int           // of them
	Oldest           time.Duration // how long the first of Due has been due; exact for the routing key, whatever its types
	More             bool          // of the routing key: the limit was reached, and there may be messages and types that were not seen
}

// Totals are of the whole table.
type Totals struct {
	InFlight     map[string]int // by type
	InFlightMore bool           // the limit was reached
	Failed       map[FailedKind]int
	FailedMore   bool           // the limit was reached
	Lapsed       time.Duration  // how long ago the oldest lease should have been renewed that was not; 0: none
	Snapshot     *time.Duration // age of the oldest transaction that holds back vacuum or purge, 0: none; nil: nobody may know
}

// FailedKind is what unresolved failed messages are counted by.
type FailedKind struct {
	Type   string
	Reason Reason
}

// Duty is what one relay at most does for all of them.
type Duty struct {
	Kind, Name string
	Relay      string        // which does it; "": none
	Epoch      int64         // grows with each change of hands
	Beats      int64         // grows with each renewal
	Length     time.Duration // how long it may stand still before another relay takes it
}

// Remover removes what was kept for long enough.
type Remover interface {
	// Remove looks at one page of rows in the order of their key, removes those of them that were kept for long enough and
	// that nobody locks, and tells where the next page begins. Of messages only final ones go: done, and failed ones that are
	// resolved; and none as long as an operation on final messages is open. Of operations only applied ones do, after all of
	// their corrections.
	Remove(ctx context.Context, r Removal) (Removed, error)
}

// Removal asks for one page.
type Removal struct {
	What   Kept
	Keep   Retention
	After  string // the Next of the page before; "": the beginning
	Most   int    // rows to look at, 1 or more
	DryRun bool   // count, and remove nothing
}

// Removed is what became of a page.
type Removed struct {
	Looked int    // rows that it had
	Gone   int    // rows that went, corrections of operations among them; of a dry run those that would go
	Next   string // "": nothing behind it is old
}

// Instances says which instance of an application an outbox belongs to, so that no relay works on a copy of it by mistake. A
// Store is made for the instance of its relay, "" for none.
type Instances interface {
	// Instance returns the name of the instance that the outbox belongs to, "" for none. One that belongs to none is first
	// given to that of the Store, if there is one.
	Instance(ctx context.Context) (string, error)
}

// Database is all the seams that the engine needs; the Stores of package dialect implement it.
type Database interface {
	Store
	Scout
	Reclaimer
	Presence
	Operator
	Gauger
	Instances
	Remover
}
