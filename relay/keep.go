package relay

import (
	"context"
	"time"
)

const (
	finishEvery = time.Second
	finishBatch = 500
)

// renew keeps the leases that something is open under: a send inside its own deadline, or an outcome that waits to be
// written. A renewal that fails is tried again well before the leases end.
func (r *Relay) renew(ctx context.Context) {
	every := r.cfg.Lease / 3
	for wait := every; sleep(ctx, wait); {
		r.ticks.mark("renew")
		wait = every
		if r.renewOnce(ctx) != nil {
			wait = every / 8
		}
	}
}

func (r *Relay) renewOnce(ctx context.Context) error {
	ids := r.leases.renewable()
	if len(ids) == 0 {
		return nil
	}
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Lease/4) // one that hangs leaves time for another
	defer cancel()
	var lost []LeaseID
	err := r.call(ctx, "renew", func(ctx context.Context) (err error) {
		lost, err = r.cfg.Database.Renew(ctx, ids)
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range r.leases.renewed(ids, lost, asked) {
		r.log.Warn("lease lost", "lease_id", id, "step", "renew")
	}
	return nil
}

// finish deletes the rows of leases that nothing is open under any more, many in one statement.
func (r *Relay) finish(ctx context.Context) {
	for sleep(ctx, finishEvery) {
		r.finishOnce(ctx)
	}
}

func (r *Relay) finishOnce(ctx context.Context) {
	for {
		ids := r.leases.finished(finishBatch)
		if len(ids) == 0 {
			return
		}
		err := r.call(ctx, "finish", func(ctx context.Context) error { return r.cfg.Database.Finish(ctx, ids) })
		if err != nil {
			return // the next round, or another relay's reclaim, finds them
		}
		r.leases.forget(ids)
	}
}

// presence is what this relay tells of itself. One that stands by, or may not work here, serves no destination.
func (r *Relay) presence(active bool) Beat {
	routes := r.routing.Load()
	b := Beat{Host: r.cfg.Host, Version: r.cfg.Version, ConfigHash: routes.hash, Instance: r.cfg.Instance}
	if !active || !r.owner.serves() {
		return b
	}
	for _, d := range r.destinations {
		if !d.Shared || routes.leadsTo(d.Name) { // else it has no use for its share
			b.Destinations = append(b.Destinations, d.Name)
		}
		b.Breakers = append(b.Breakers, d.breakerStates()...)
	}
	return b
}
