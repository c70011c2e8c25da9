package main

import (
	"context"
	"sync"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// schemaEvery is between looks at the version of the tables while a relay works on them.
const schemaEvery = 5 * time.Second

// runAdmitted runs the relay for as long as the tables admit it. Where a migration comes that does not, it stops in order,
// before its statements meet tables that they were not made for by more than a few, and the error says so.
func (d *daemon) runAdmitted(ctx context.Context, r *relay.Relay) error {
	working, end := context.WithCancel(ctx)
	var refusal error
	var watching sync.WaitGroup
	watching.Go(func() {
		if refusal = d.watchSchema(working); refusal != nil {
			words := refusal.Error()
			d.health.waiting.Store(&words)
			d.log.Error("the tables do not admit this outboxd any more", "err", words)
			end()
		}
	})
	r.Run(working)
	end()
	watching.Wait()
	return refusal
}

// watchSchema returns an error when the tables do not admit this outboxd any more, and nil when ctx ends. What it cannot
// read says nothing.
func (d *daemon) watchSchema(ctx context.Context) error {
	look := time.NewTicker(schemaEvery)
	defer look.Stop()
	newer := 0
	for {
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil
		}
		status, err := d.db.CheckSchema(ctx)
		switch {
		case err != nil:
		case status.State == dialect.SchemaRefused:
			return status.Err()
		case status.State == dialect.SchemaNewer && status.Version > newer:
			newer = status.Version
			d.log.Info("the tables are newer than this outboxd, and admit it", "version", status.Version, "needed", status.Needed)
		}
	}
}
