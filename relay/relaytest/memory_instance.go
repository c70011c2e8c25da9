package relaytest

import (
	"cmp"
	"context"
	"time"
)

// Instance implements relay.Instances.
func (s *Memory) Instance(ctx context.Context) (of string, err error) {
	err = s.locked(ctx, func(t *Table, _ time.Time) {
		t.instance = cmp.Or(t.instance, s.instance)
		of = t.instance
	})
	return of, err
}

// SetInstance makes the outbox belong to an instance, as a person would.
func (t *Table) SetInstance(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.instance = name
}
