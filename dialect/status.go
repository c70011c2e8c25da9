package dialect

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/outboxd/outboxd/relay"
)

// Status is how the outbox is doing. Nothing in it counts the whole table.
type Status struct {
	Relays   []RelayStatus   `json:"relays"`
	Waiting  []Waits         `json:"waiting"`
	Failed   []FailedCount   `json:"failed"` // unresolved ones
	Breakers []BreakerStatus `json:"breakers"`
	Pauses   []PauseStatus   `json:"pauses"`
	Instance string          `json:"instance"` // that the table belongs to; "": none
}

// RelayStatus is a row of outbox_relay.
type RelayStatus struct {
	Name         string   `json:"name"`
	Host         string   `json:"host"`
	Version      string   `json:"version"`
	ConfigHash   string   `json:"config_hash"`
	Instance     string   `json:"instance"` // that its configuration names
	Destinations []string `json:"destinations"`
	StartedAt    Time     `json:"started_at"`
	SeenFor      Age      `json:"seen_for"` // since seen_at
}

// Waits are messages that are not final, by what they wait for.
type Waits struct {
	RoutingKey string `json:"routing_key"`
	Why        Why    `json:"why"`
	Messages   int    `json:"messages"`
	More       bool   `json:"more"`   // only so many were counted, there are more
	Oldest     Age    `json:"oldest"` // of Due: for how long the oldest has been due; of the others since it was created
}

// Why says what a message waits for.
type Why string

// What a message that is not final can wait for.
const (
	Due      Why = "due"       // a relay that takes it
	Delayed  Why = "delayed"   // the time that the application set
	Retrying Why = "retrying"  // its next try
	Paused   Why = "paused"    // somebody to resume it
	NoPolicy Why = "no_policy" // a configuration that accepts its type and version
	InFlight Why = "in_flight" // the outcome of its send
)

// FailedCount counts unresolved failed messages of a kind.
type FailedCount struct {
	RoutingKey string  `json:"routing_key"`
	Type       string  `json:"type"`
	Reason     string  `json:"reason"`
	ErrorClass *string `json:"error_class"`
	Messages   int     `json:"messages"`
	More       bool    `json:"more"`   // only the last ones were counted, there are more
	Latest     Age     `json:"latest"` // since the last one failed
}

// BreakerStatus is a breaker as its relay last told.
type BreakerStatus struct {
	Relay     string `json:"relay"`
	Name      string `json:"name"`  // destination, or destination/routing_key
	State     string `json:"state"` // ok, open or ramp
	Width     int    `json:"width"`
	Failures  int    `json:"failures"`
	LastError string `json:"last_error"`
	Age       Age    `json:"age"` // since its relay told so
}

// PauseStatus is what somebody paused and nobody resumed.
type PauseStatus struct {
	Target    string `json:"target"` // everything, destination:NAME, routing_key:KEY, type:TYPE or type_version:VERSION@TYPE
	Operation string `json:"operation"`
	Actor     string `json:"actor"`
	Note      string `json:"note"`
	Left      *Age   `json:"left"` // nil: until somebody resumes it
}

// Status looks at relays, waiting and failed messages, breakers and pauses.
func (i *Inspector) Status(ctx context.Context) (s Status, err error) {
	if s.Relays, err = i.Relays(ctx); err != nil {
		return s, err
	}
	if s.Waiting, err = i.Waiting(ctx); err != nil {
		return s, err
	}
	s.Failed = []FailedCount{}
	if err = i.selectAll(ctx, "status of failed messages", &s.Failed, i.Texts.Failed); err != nil {
		return s, err
	}
	if s.Breakers, err = i.breakers(ctx); err != nil {
		return s, err
	}
	if s.Pauses, err = i.pauses(ctx); err != nil {
		return s, err
	}
	s.Instance, err = i.Instance(ctx)
	return s, err
}

// Waiting tells which messages are not final, and why: by routing key, at most CountBound of each kind are counted.
func (i *Inspector) Waiting(ctx context.Context) ([]Waits, error) {
	waits := []Waits{}
	return waits, i.selectAll(ctx, "status of waiting messages", &waits, i.Texts.Waiting)
}

// Relays tells which relays are alive, or were until they were last seen.
func (i *Inspector) Relays(ctx context.Context) ([]RelayStatus, error) {
	var found []struct {
		RelayStatus
		Served string
	}
	err := i.selectAll(ctx, "status of relays", &found, i.Texts.Relays)
	relays := make([]RelayStatus, 0, len(found))
	for _, f := range found {
		if err := json.Unmarshal([]byte(f.Served), &f.Destinations); err != nil {
			return nil, fmt.Errorf("destinations of relay %s: %w", f.Name, err)
		}
		relays = append(relays, f.RelayStatus)
	}
	return relays, err
}

// Peers tells the same to a relay that watches the others: relay.Presence.
func (i *Inspector) Peers(ctx context.Context) ([]relay.Peer, error) {
	var found []struct {
		relay.Peer
		Served string
	}
	err := i.selectAll(ctx, "peers", &found, i.Texts.Peers)
	peers := make([]relay.Peer, 0, len(found))
	for _, f := range found {
		if err := json.Unmarshal([]byte(f.Served), &f.Destinations); err != nil {
			return nil, fmt.Errorf("destinations of relay %s: %w", f.Name, err)
		}
		peers = append(peers, f.Peer)
	}
	return peers, err
}

func (i *Inspector) breakers(ctx context.Context) ([]BreakerStatus, error) {
	var found []struct {
		BreakerStatus
		Value string
	}
	err := i.selectAll(ctx, "status of breakers", &found, i.Texts.Breakers)
	breakers := make([]BreakerStatus, 0, len(found))
	for _, f := range found {
		if json.Unmarshal([]byte(f.Value), &f.BreakerStatus) != nil {
			f.State = "unreadable" // Somebody wrote into the row.
		}
		breakers = append(breakers, f.BreakerStatus)
	}
	return breakers, err
}

func (i *Inspector) pauses(ctx context.Context) ([]PauseStatus, error) {
	var rows []pauseRow
	err := i.selectAll(ctx, "pauses", &rows, i.Operations.Pauses)
	pauses := make([]PauseStatus, 0, len(rows))
	for _, r := range rows {
		v, left := r.read()
		p := PauseStatus{Target: r.Name, Operation: v.Operation, Actor: v.Actor, Note: v.Note}
		if v.Until != nil {
			left := Age(max(left, 0))
			p.Left = &left
		}
		pauses = append(pauses, p)
	}
	return pauses, err
}
