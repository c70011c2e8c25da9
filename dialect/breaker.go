package dialect

import "github.com/outboxd/outboxd/relay"

// BreakerValue is the value of a breaker in outbox_control, as JSON.
type BreakerValue struct {
	State     string `json:"state"`
	Width     int    `json:"width"`
	Failures  int    `json:"failures"`
	LastError string `json:"last_error"`
}

// BreakerRow is the name and the value of a breaker in outbox_control.
func BreakerRow(s relay.BreakerState) (name string, value BreakerValue) {
	name = s.Destination
	if s.RoutingKey != "" {
		name += "/" + s.RoutingKey
	}
	return name, BreakerValue{s.State, s.Width, s.Failures, s.LastError}
}
