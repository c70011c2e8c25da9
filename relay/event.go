package relay

import "time"

// EventKind says what an Event tells.
type EventKind string

// What the relay tells, after it happened.
const (
	EventClaim  EventKind = "claim"  // a claim of Count messages of RoutingKey took Took
	EventSend   EventKind = "send"   // a send to Destination came to Outcome after Took
	EventSettle EventKind = "settle" // Count settlements were written in Took
	EventFinal  EventKind = "final"  // a message became State, with Reason where it failed, Age after it was created
	EventTurned EventKind = "turned" // admit sent a message back; Class is paused, no_policy or version
	EventLost   EventKind = "lost"   // a settlement found its message under another lease
	EventLapse  EventKind = "lapse"  // Count messages of Destination were taken back from a dead lease of Relay

	EventOperation EventKind = "operation" // a step of an operation Op changed Count messages; with a Result it was the last
)

// Event is one thing that happened, for metrics. Fields that a kind does not name are zero.
type Event struct {
	Kind        EventKind
	Destination string
	RoutingKey  string
	Type        string
	Outcome     Kind
	Class       string
	State       State
	Reason      Reason
	Count       int
	Took        time.Duration
	Age         time.Duration
	Relay       string
	Op          Op
	Result      string
}

// CauseVersion is the Class of a message that was turned back because its policy does not accept its schema version: the row
// says ClassNoPolicy.
const CauseVersion = "version"

// What becomes of an operation.
const (
	ResultApplied = "applied"
	ResultDryRun  = "dry_run"
	ResultRefused = "refused" // it could not be done
)

// Snapshot is how the relay is at one moment, for health checks and gauges.
type Snapshot struct {
	DatabaseSeen time.Time            // when the database last answered; zero: never
	Ticks        map[string]time.Time // when each loop (claim, renew, reclaim, discover, beat, steer, operate, figures, retain, sit) last went round
	Destinations []DestinationState
	Figures      *Figures // of the whole table; nil: another relay tells them, or none
	Standby      bool     // as many other relays work on the table as may
	Refused      string   // why nothing is sent: the outbox belongs to another instance; "": it does not
}

// DestinationState is a destination as this relay sees it.
type DestinationState struct {
	Name     string
	State    string // ok, ramp, open, throttled, standby or paused
	InFlight int
	Limit    int
}
