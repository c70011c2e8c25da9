package relay

import "time"

// state is the destination for health and gauges: the worst of its breakers.
func (d *destination) state() DestinationState {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := DestinationState{Name: d.Name, State: d.stateNow(), InFlight: d.inFlight, Limit: d.share.limit(time.Now())}
	for _, b := range d.keys {
		if b.open {
			s.State = "open"
		}
	}
	return s
}

// stateNow is the destination's own state: that of its breaker, unless something else keeps it from being used.
func (d *destination) stateNow() string {
	now := time.Now()
	switch state := d.whole.state(); {
	case state == "open":
		return state
	case d.share.held(now):
		return "throttled"
	case d.share.limit(now) == 0:
		return "standby"
	default:
		return state
	}
}

// breakerStates are the breakers for people to see: the destination's own, and those of routing keys that are not ok.
func (d *destination) breakerStates() []BreakerState {
	d.mu.Lock()
	defer d.mu.Unlock()
	whole := d.whole.public(d.Name, "")
	if whole.State = d.stateNow(); whole.State == "throttled" {
		whole.LastError = d.share.asked
	}
	if limit := d.share.limit(time.Now()); whole.Width == 0 || whole.Width > limit {
		whole.Width = limit
	}
	states := []BreakerState{whole}
	for key, b := range d.keys {
		if b.state() != "ok" {
			states = append(states, b.public(d.Name, key))
		}
	}
	return states
}

func (b *breaker) public(destination, key string) BreakerState {
	s := BreakerState{Destination: destination, RoutingKey: key, State: b.state(), Width: b.width, Failures: b.failures}
	if s.State == "open" {
		s.LastError = b.lastErr
	}
	return s
}
