package relay

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Target is what can be paused: exactly one of its parts; a schema version is a part of a type.
type Target struct {
	Destination   string
	RoutingKey    string
	Type          string
	SchemaVersion int // of Type; 0: all
	Everything    bool
}

// String is the target's name in outbox_control.
func (t Target) String() string {
	switch {
	case t.Everything:
		return "everything"
	case t.Destination != "":
		return "destination:" + t.Destination
	case t.RoutingKey != "":
		return "routing_key:" + t.RoutingKey
	case t.SchemaVersion != 0:
		return "type_version:" + strconv.Itoa(t.SchemaVersion) + "@" + t.Type
	}
	return "type:" + t.Type
}

// ParseTarget reads what String wrote.
func ParseTarget(name string) (Target, error) {
	kind, rest, _ := strings.Cut(name, ":")
	switch {
	case name == "everything":
		return Target{Everything: true}, nil
	case rest == "":
	case kind == "destination":
		return Target{Destination: rest}, nil
	case kind == "routing_key":
		return Target{RoutingKey: rest}, nil
	case kind == "type":
		return Target{Type: rest}, nil
	case kind == "type_version":
		number, typ, _ := strings.Cut(rest, "@")
		if version, err := strconv.Atoi(number); err == nil && version > 0 && typ != "" {
			return Target{Type: typ, SchemaVersion: version}, nil
		}
	}
	return Target{}, fmt.Errorf("%q names nothing that can be paused", name)
}

// Order names the target in an operation.
func (t Target) Order() Order {
	return Order{
		Filter:      Filter{RoutingKey: t.RoutingKey, Type: t.Type, SchemaVersion: t.SchemaVersion},
		Destination: t.Destination, Everything: t.Everything,
	}
}

func (t Target) parts() int {
	return btoi(t.Destination != "") + btoi(t.RoutingKey != "") + btoi(t.Type != "") + btoi(t.Everything)
}

// Pause is a pause that was asked for and that nobody has resumed.
type Pause struct {
	Target
	Operation string        // its id
	Endless   bool          // only a resume ends it
	Left      time.Duration // else: by the database's clock; 0 or less: its time is over
}

// pauses are those in force, as far as this relay knows. Its zero value is none. Safe for concurrent use.
type pauses struct {
	mu     sync.RWMutex
	active map[Target]time.Time // until when; zero: without an end
}

// set takes what the database told at that moment, and tells what is new of it and what is not there any more.
func (p *pauses) set(told []Pause, now time.Time) (begun, ended []Target) {
	active := make(map[Target]time.Time, len(told))
	for _, t := range told {
		if t.Endless {
			active[t.Target] = time.Time{}
		} else if t.Left > 0 {
			active[t.Target] = now.Add(t.Left)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	begun, ended = without(active, p.active), without(p.active, active)
	p.active = active
	return begun, ended
}

// without returns the targets of one that are not in the other.
func without(one, other map[Target]time.Time) (targets []Target) {
	for t := range one {
		if _, ok := other[t]; !ok {
			targets = append(targets, t)
		}
	}
	return targets
}

// lane tells that nothing of a routing key may be claimed or sent to a destination.
func (p *pauses) lane(destination, key string) bool {
	return p.any(Target{Everything: true}, Target{Destination: destination}, Target{RoutingKey: key})
}

// accepts tells that messages of the type and version may be sent.
func (p *pauses) accepts(typ string, version int) bool {
	return !p.any(Target{Type: typ}, Target{Type: typ, SchemaVersion: version})
}

func (p *pauses) any(targets ...Target) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if len(p.active) == 0 {
		return false
	}
	for _, t := range targets {
		if until, ok := p.active[t]; ok && (until.IsZero() || time.Now().Before(until)) {
			return true
		}
	}
	return false
}
