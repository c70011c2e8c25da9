package relay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// maxTarget is how long the name of a pause may be in outbox_control, in characters.
const maxTarget = 400

// maxOrderIDs is how many ids one operation may name.
const maxOrderIDs = 10000

// Order is the JSON object in the filter column of an operation: which messages, and how.
type Order struct {
	Filter
	Limit   int     `json:"limit,omitempty"`    // at most so many messages are changed; 0: all
	Rate    float64 `json:"rate,omitempty"`     // so many a second; 0: as fast as goes beside the daily work
	WireKey WireKey `json:"wire_key,omitempty"` // of replay and correct
	Force   bool    `json:"force,omitempty"`    // of replay and correct: although an earlier send may have taken effect

	// Of pause and resume: one of these, or the filter's routing_key, or its type with or without schema_version.
	Destination string `json:"destination,omitempty"`
	Everything  bool   `json:"everything,omitempty"`

	For          Span `json:"for,omitempty"`          // of pause: for how long
	Indefinitely bool `json:"indefinitely,omitempty"` // of pause: until somebody resumes
	Ended        bool `json:"ended,omitempty"`        // of resume: only where the pause's time is over
}

// WireKey says under which wire key a replay sends.
type WireKey string

// The wire keys that can be asked for; empty: by the rule of relay/DESIGN.md, Operations.
const (
	NewKey  WireKey = "new"
	SameKey WireKey = "same"
)

// Span is a length of time as people write it in an order: 90s, 30m, 2h.
type Span time.Duration

// MarshalText writes it as Go does.
func (s Span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

// UnmarshalText reads it as Go does.
func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return errors.New("for wants a duration such as 30m or 2h")
	}
	*s = Span(d)
	return nil
}

// ParseOrder reads the filter of an operation. The error says in one line what of it cannot be; nothing is guessed, since an
// order that is misread can hit every message.
func ParseOrder(op Op, filter, note string) (Order, error) {
	var o Order
	if op == OpDrill {
		return o, nil // its filter tells, and orders nothing
	}
	decoder := json.NewDecoder(strings.NewReader(filter))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&o); err != nil {
		return Order{}, wrongJSON(err)
	}
	if decoder.More() || !strings.HasPrefix(strings.TrimSpace(filter), "{") {
		return Order{}, errors.New("the filter is not one JSON object")
	}
	slices.Sort(o.IDs)
	o.IDs = slices.Compact(o.IDs)
	if op.Steers() {
		return o, o.checkSteering(op)
	}
	return o, o.checkMessages(op, note)
}

// wrongJSON says what is wrong in our words, with names of fields and no value.
func wrongJSON(err error) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	text := strings.TrimPrefix(err.Error(), "json: ")
	switch {
	case errors.As(err, &kind):
		return fmt.Errorf("%s in the filter has a value of the wrong kind", strings.TrimPrefix(kind.Field, "Filter."))
	case errors.As(err, &syntax), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("the filter is not one JSON object")
	case strings.HasPrefix(text, "unknown field"):
		return fmt.Errorf("%s in the filter: write ids, state, routing_key, type, schema_version, reason, error_class, key, since, until, "+
			"limit, rate, wire_key or force; to pause also destination, everything, for or indefinitely", text)
	case strings.HasPrefix(text, "parsing time"):
		return errors.New("since and until want a time such as 2026-01-31T15:04:05Z")
	}
	return fmt.Errorf("the filter cannot be read: %s", clean(text, maxResultBytes))
}

// checkMessages refuses what an operation on messages cannot mean.
func (o Order) checkMessages(op Op, note string) error {
	states := op.states()
	sends := op == OpReplay || op == OpCorrect
	switch {
	case op == OpPurge || op == OpInstance:
		return fmt.Errorf("%s only tells what somebody did: do it with outboxd %s", op, op)
	case states == nil:
		return fmt.Errorf("no operation %q: replay, correct, retry_now, cancel, resolve, pause or resume", op)
	case o.Destination != "" || o.Everything || o.For != 0 || o.Indefinitely || o.Ended:
		return fmt.Errorf("destination, everything, for, indefinitely and ended are for pause and resume, not for %s", op)
	case o.Empty() && op != OpCorrect:
		return errors.New("an empty filter would be all messages: name ids, a state, a type, a routing key or another field")
	case len(o.IDs) > 0 && op == OpCorrect:
		return errors.New("correct takes the ids of its messages from outbox_correction")
	case len(o.IDs) > maxOrderIDs:
		return fmt.Errorf("%d ids: at most %d for one operation", len(o.IDs), maxOrderIDs)
	case o.State != "" && !slices.Contains(states, o.State):
		return fmt.Errorf("%s is not for messages in state %q", op, o.State)
	case o.Reason != "" && !o.Reason.known():
		return fmt.Errorf("no message fails for reason %q", o.Reason)
	case outOfTime(o.Since) || outOfTime(o.Until):
		return errors.New("since and until want a time of the years 1970 to 9998")
	case o.Limit < 0 || o.SchemaVersion < 0:
		return errors.New("limit and schema_version are above 0")
	case o.Rate != 0 && !(o.Rate >= 1e-6 && o.Rate <= 1e6):
		return errors.New("rate is how many messages a second: 0.000001 to 1000000")
	case !slices.Contains([]WireKey{"", NewKey, SameKey}, o.WireKey):
		return errors.New("wire_key is new or same")
	case (o.WireKey != "" || o.Force) && !sends:
		return fmt.Errorf("wire_key and force are for replay and correct, not for %s", op)
	case strings.TrimSpace(note) == "":
		return o.checkNote(op)
	}
	return nil
}

// checkNote refuses what a person has to justify and did not.
func (o Order) checkNote(op Op) error {
	switch {
	case op == OpResolve:
		return errors.New("resolve wants a note: it lets go on what waits behind the message, and somebody may ask why")
	case op == OpCorrect:
		return errors.New("correct wants a note: what an application wrote becomes something else, and somebody may ask why")
	case o.Force:
		return errors.New("force wants a note: the work may be done twice, and somebody may ask who looked at the receiver")
	}
	return nil
}

// outOfTime tells of a time that some database cannot compare with.
func outOfTime(at *time.Time) bool {
	return at != nil && (at.UTC().Year() < 1970 || at.UTC().Year() > 9998)
}

// checkSteering refuses what a pause or a resume cannot mean.
func (o Order) checkSteering(op Op) error {
	rest := o.Filter
	rest.RoutingKey, rest.Type, rest.SchemaVersion = "", "", 0
	switch {
	case !rest.Empty() || o.Limit != 0 || o.Rate != 0 || o.WireKey != "" || o.Force:
		return fmt.Errorf("%s is about a destination, a routing_key, a type (with schema_version) or everything, not about single messages", op)
	case o.Target().parts() != 1 || o.SchemaVersion < 0 || o.SchemaVersion > 0 && o.Type == "":
		return fmt.Errorf("%s wants one of destination, routing_key, type (with schema_version) and everything", op)
	case utf8.RuneCountInString(o.Target().String()) > maxTarget:
		return fmt.Errorf("the name of what to %s is longer than any that there can be", op)
	case op == OpResume && (o.For != 0 || o.Indefinitely):
		return errors.New("for and indefinitely are for pause")
	case op == OpPause && ((o.For > 0) == o.Indefinitely || o.For < 0 || o.Ended):
		return errors.New("pause wants for, such as 30m, or indefinitely")
	}
	return nil
}

// Target is what the order pauses or resumes.
func (o Order) Target() Target {
	return Target{Destination: o.Destination, RoutingKey: o.RoutingKey, Type: o.Type, SchemaVersion: o.SchemaVersion, Everything: o.Everything}
}

// Text is the order as the filter column has it.
func (o Order) Text() (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(o)
	return strings.TrimSpace(text.String()), err
}
