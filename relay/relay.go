package relay

import "context"

// Relay walks messages through their life.
type Relay struct{ cfg Config }

// New checks cfg and makes a Relay.
func New(cfg Config) (*Relay, error) { return &Relay{cfg: cfg}, nil }

// Run works until ctx ends, or with Once until nothing is left to do.
func (r *Relay) Run(ctx context.Context) error { return nil }

// Snapshot tells how the relay is.
func (r *Relay) Snapshot() Snapshot { return Snapshot{} }
