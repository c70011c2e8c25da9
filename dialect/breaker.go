package dialect

import (
	"encoding/json"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// ShowFor is how long a beat, once its own row is written, takes at most to show the breakers: the next beat must not come
// late by it, or others give this relay's places away.
const ShowFor = 2 * time.Second

// breakerValue is the value of a breaker in outbox_control, as JSON.
type breakerValue struct {
	State     string `json:"state"`
	Width     int    `json:"width"`
	Failures  int    `json:"failures"`
	LastError string `json:"last_error"`
}

// BreakerRow is the name and the value, JSON, of a breaker in outbox_control.
func BreakerRow(s relay.BreakerState) (name, value string) {
	name = s.Destination
	if s.RoutingKey != "" {
		name += "/" + s.RoutingKey
	}
	text, _ := json.Marshal(breakerValue{s.State, s.Width, s.Failures, s.LastError}) // numbers and texts: nothing of that can fail
	return name, string(text)
}
