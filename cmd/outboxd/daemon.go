package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/outboxd/outboxd/cmd/outboxd/tracing"
	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// daemon is one configuration at work: a relay on one table, with pools, destinations, series and health of its own.
type daemon struct {
	program *program
	file    string
	name    string // where the process has several; else empty
	once    bool   // it ends when nothing is left
	paused  string // as relay.Config.Paused: one start, however often it is opened
	log     *slog.Logger
	metrics *metrics
	health  *health
	trace   *tracing.Tracing // of the process; nil: no spans

	config relay.Config // as it was opened, all but the database
	db     database

	mu     sync.Mutex
	loaded *loaded      // in force
	relay  *relay.Relay // nil while there is none at work
}

// pauseOnce lets everything be paused before the first claim, once, however often the outbox is opened.
func (d *daemon) pauseOnce() { d.paused = dialect.NewUUID() }

// open makes destinations and pools. It connects to nothing yet.
func (d *daemon) open() error {
	l := d.inForce()
	config, err := buildRelay(l, parts{env: d.program.env, out: d.program.stdout, log: d.log, trace: d.trace})
	if err != nil {
		return err
	}
	db, err := l.openFor(d.program.env, config.Name, config.Lease)
	if err != nil {
		return errors.Join(err, closeSinks(config))
	}
	d.config, d.db = config, db
	return nil
}

// close is for an outbox that was opened and does not come to work.
func (d *daemon) close() error { return errors.Join(closeSinks(d.config), d.db.Close()) }

// serve makes what health checks and scrapes are answered from.
func (d *daemon) serve(ctx context.Context, registry *prometheus.Registry) {
	d.metrics = metricsIn(registry, d.name, d.inForce().config)
	d.health = &health{outbox: d.name, lease: d.config.Lease, stopped: ctx.Err}
	d.metrics.series.MustRegister(newGauges(&d.metrics.labels, d.health.snapshot))
}

// run is the life of an outbox that was opened: it waits for the database, works, and closes all.
func (d *daemon) run(ctx context.Context) error {
	defer d.db.Close()
	d.log.Info("starting", "relay", d.config.Name, "version", builtFrom().Version, "commit", builtFrom().Commit)
	w := &waiter{db: d.db, health: d.health, log: d.log}
	if l := d.inForce(); l.config.Database.Migrate {
		w.migrate = func(ctx context.Context) ([]string, error) { return l.migrate(ctx, d.program.env) }
	}
	if err := w.wait(ctx, d.once); err != nil {
		if ctx.Err() != nil {
			err = nil // told to stop before there was anything to do
		}
		return errors.Join(err, closeSinks(d.config))
	}
	if err := d.work(ctx); err != nil || !d.once || ctx.Err() != nil {
		return err
	}
	return stillWaiting(ctx, d.db, d.inForce().plan().Routes)
}

// work runs the relay until it is told to stop, or with once until nothing is left to do.
func (d *daemon) work(ctx context.Context) error {
	store, err := d.db.Store(d.config.Name, d.config.Instance, d.config.Lease)
	if err != nil {
		return errors.Join(failf(exitDatabase, "%w", err), closeSinks(d.config))
	}
	defer store.Close()
	config := d.config
	config.Database, config.Log, config.Observe, config.Once, config.Paused = store, d.log, d.metrics.observe, d.once, d.paused
	r, err := relay.New(config)
	if err == nil {
		err = d.begin(r)
	}
	if err != nil {
		return errors.Join(failf(exitConfiguration, "%w", err), closeSinks(config))
	}
	d.log.Info("working", "relay", config.Name)
	refusal := d.runAdmitted(ctx, r)
	d.log.Info("stopped", "relay", config.Name)
	if refusal != nil {
		return refusal
	}
	if refused := r.Snapshot().Refused; d.once && refused != "" {
		return failf(exitNotAllowed, "%s", refused)
	}
	return nil
}

// begin lets health checks and reloads have the relay, which first takes what was reloaded while it was waited for.
func (d *daemon) begin(r *relay.Relay) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := r.Reload(d.loaded.plan()); err != nil {
		return err
	}
	d.relay = r
	snapshot := snapshotter(r.Snapshot)
	d.health.running.Store(&snapshot)
	return nil
}

func (d *daemon) inForce() *loaded {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.loaded
}

// closeSinks closes what a relay that never ran will not close.
func closeSinks(c relay.Config) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var errs []error
	for _, to := range c.Destinations {
		if to.Sink == nil {
			continue // it could not be made
		}
		if err := to.Sink.Close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("close destination %s: %w", to.Name, err))
		}
	}
	return errors.Join(errs...)
}
