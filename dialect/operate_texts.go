package dialect

import (
	"time"

	"github.com/outboxd/outboxd/relay"
)

// OperationTexts are an engine's statements of operations. Placeholders are question marks, in the order that is named;
// keys is what Keys makes of messages.
type OperationTexts struct {
	// Open selects id, op, filter, actor, note ('' for none) and dry_run of what is not applied: those that steer first,
	// then in the order of requested_at, and none that is asked for a later time.
	Open string
	// Lock locks an open operation, or passes over it: progress, affected and detail, '' and 0 for none, and now in
	// microseconds since 1970. id.
	Lock string
	// Advance writes progress, affected, detail ('' for none), applier, and whether it is applied now. The same, and id.
	Advance string
	// Corrections walks the messages of an operation's corrections by their ids. id, as the first of Walk.Args.
	Corrections func(operation string) Walk
	// CountCorrections is n, how many they are, such of no message among them. id of the operation.
	CountCorrections string
	// Candidates selects what type candidate has, LockCandidates locks the rows, too, by key ascending, and passes over
	// those that others hold. id of the operation, keys.
	Candidates, LockCandidates string
	// Changed selects the ids of messages that do not have the payload any more that their correction was made from. id of
	// the operation, keys.
	Changed string
	// Keys is messages as the statements take them.
	Keys func([]relay.Candidate) any

	// KeepPayload writes the payloads of messages into their corrections as the old ones, Correct gives them the new ones.
	// id of the operation, keys.
	KeepPayload, Correct string
	// Revive makes messages pending in a new life. Whether they keep expires_at, forget unknown_since, get a new send_id;
	// keys.
	Revive string
	// Hasten makes pending messages due now, Withdraw cancels them, Resolve resolves failed ones. keys.
	Hasten, Withdraw, Resolve string
	// Tell inserts a message that tells of each that was cancelled. aggregatetype ('' for NULL), type, keys.
	Tell string

	// Pauses selects name, value and now of outbox_control's pauses; Paused locks the one of a name.
	Pauses, Paused string
	// Pause writes name and value, and Resume removes a name.
	Pause, Resume string

	// Ask inserts id, op, filter, actor, note and dry_run; AskSoon the same, to be applied a second later.
	Ask, AskSoon string
	// Instance selects the value of outbox_control's instance; KeepInstance writes value if there is none, SetInstance in any
	// case.
	Instance, KeepInstance, SetInstance string
	// Did inserts an operation that somebody did without a relay: id, op, filter, actor, note and affected.
	Did string
	// Payloads selects type Payload. keys.
	Payloads string
	// AddCorrections begins an INSERT, of which each row is AddCorrection: the id of the operation, that of the message, and
	// what Body makes of the new payload and OldBody of the old one.
	AddCorrections, AddCorrection string
	Body                          func(payload []byte) []any
	OldBody                       func(Payload) []any
	// Get is type Operation, by id; List the same, the last one first. Whether only open ones, and how many at most.
	Get, List string
}

// candidate is a relay.Candidate as a row.
type candidate struct {
	ID         string
	Seq        int64
	RoutingKey string `json:"routing_key"`
	Type       string
	State      relay.State
	Reason     relay.Reason
	ErrorClass string        `json:"error_class"`
	Lease      relay.LeaseID `json:"lease_id"`
	Due        bool
	Resolved   bool
	Went       bool
	Late       bool
	UnknownFor *Age `json:"unknown_for"`
}

func (c candidate) candidate() relay.Candidate {
	out := relay.Candidate{
		ID: c.ID, Seq: c.Seq, RoutingKey: c.RoutingKey, Type: c.Type, State: c.State, Reason: c.Reason,
		ErrorClass: c.ErrorClass, Lease: c.Lease, Due: c.Due, Resolved: c.Resolved, Went: c.Went, Late: c.Late,
	}
	if c.UnknownFor != nil {
		out.Unknown, out.UnknownFor = true, time.Duration(*c.UnknownFor)
	}
	return out
}
