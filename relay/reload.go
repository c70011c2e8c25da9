package relay

import (
	"errors"
	"fmt"
	"slices"
)

// Reload makes the relay go on by another configuration, and drops nothing that is under way. Of next it takes Routes and
// ConfigHash, and of each Destination, by its name, Width, Rate, Dedupe and Breaker; all else stays as New was given it, and
// next need not say it. An error names what is wrong, and then nothing has changed: the destinations must be the same ones.
//
// A send is bounded and decided by the policy and the Dedupe that were in force when it was admitted. What is claimed and
// not admitted yet goes by the new ones; where its route leads elsewhere now, it is given back. Safe for concurrent use.
func (r *Relay) Reload(next Config) error {
	cfg := r.cfg
	cfg.Routes, cfg.ConfigHash, cfg.Destinations = next.Routes, next.ConfigHash, nil
	var errs []error
	for _, d := range r.destinations {
		i := slices.IndexFunc(next.Destinations, func(to Destination) bool { return to.Name == d.Name })
		if i < 0 {
			errs = append(errs, fmt.Errorf("relay: destination %q is gone: that wants a restart", d.Name))
			continue
		}
		cfg.Destinations = append(cfg.Destinations, d.with(next.Destinations[i]))
	}
	for _, d := range next.Destinations {
		if !slices.ContainsFunc(r.destinations, func(is *destination) bool { return is.Name == d.Name }) {
			errs = append(errs, fmt.Errorf("relay: destination %q is new: that wants a restart", d.Name))
		}
	}
	if err := errors.Join(append(errs, cfg.complete())...); err != nil {
		return err
	}
	for i, d := range r.destinations {
		d.resize(cfg.Destinations[i])
	}
	r.routing.Store(&routing{cfg.Routes, cfg.ConfigHash})
	r.wakeUp()
	return nil
}

// with is the destination with the limits of another one.
func (d *destination) with(to Destination) Destination {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := d.Destination
	next.Width, next.Rate, next.Dedupe, next.Breaker = to.Width, to.Rate, to.Dedupe, to.Breaker
	return next
}

// resize puts other limits in force. What is under way goes on, also where it is more than they allow; the share that this
// relay has stays the same part of them. A breaker keeps its state.
func (d *destination) resize(to Destination) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.whole.configure(to.Breaker)
	for _, b := range d.keys {
		b.configure(to.Breaker)
	}
	if to.Rate != d.Rate {
		d.share.pace = newPace(to.Rate) // what waits for its turn has it by the old one
	}
	// All else never changes, and is read without the lock.
	d.Width, d.Rate, d.Dedupe, d.Breaker = to.Width, to.Rate, to.Dedupe, to.Breaker
	d.share.measure(to)
}

// configure gives a breaker other settings; what it has learned of messages that fooled it stays.
func (b *breaker) configure(cfg BreakerConfig) {
	if b.need == b.cfg.Run {
		b.need = cfg.Run
	}
	b.cfg = cfg
}
