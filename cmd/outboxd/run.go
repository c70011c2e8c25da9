package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/relay"
)

func (p *program) runCommand() *cobra.Command {
	var once, paused bool
	cmd := &cobra.Command{
		Use: "run", Short: "Run the relay until it is told to stop", Args: noArgs(),
		Long: "run sends what is in the outbox until SIGTERM, SIGINT or SIGHUP; a second signal ends it at once.\n" +
			"With --once it ends when nothing that it may send is due: exit 0, or 8 if messages still wait.\n" +
			"With --paused everything is paused before the first claim, as after a restore: look first, then outboxd resume --everything.",
		RunE: func(cmd *cobra.Command, _ []string) error { return p.runRelay(cmd.Context(), once, paused) },
	}
	cmd.Flags().BoolVar(&once, "once", false, "end when nothing that may be sent is due or in flight")
	cmd.Flags().BoolVar(&paused, "paused", false, "pause everything before the first claim, until somebody resumes it")
	return cmd
}

// runRelay is the life of the daemon: configuration, health checks, database, relay.
func (p *program) runRelay(ctx context.Context, once, paused bool) error {
	l, err := p.load()
	if err != nil {
		return err
	}
	log := newLog(p.stderr, l.config.Log)
	for _, words := range l.warnings {
		log.Warn("configuration", "warning", words)
	}
	config, err := buildRelay(l, parts{p.env, p.stdout, log})
	if err != nil {
		return err
	}
	db, err := l.openDatabase(p.env, config.Name, config.Lease)
	if err != nil {
		return errors.Join(err, closeSinks(config))
	}
	defer db.Close()

	build := builtFrom()
	log.Info("starting", "relay", config.Name, "version", build.Version, "commit", build.Commit)
	m := newMetrics(l.config, build)
	h := &health{lease: config.Lease, stopped: ctx.Err}
	m.registry.MustRegister(newGauges(&m.labels, h.snapshot))
	defer serve(ctx, l.config.HTTP.Listen, h.handler(m), log)()

	w := &waiter{db: db, health: h, log: log}
	if l.config.Database.Migrate {
		w.migrate = func(ctx context.Context) ([]string, error) { return l.migrate(ctx, p.env) }
	}
	if err := w.wait(ctx, once); err != nil {
		if ctx.Err() != nil {
			err = nil // told to stop before there was anything to do
		}
		return errors.Join(err, closeSinks(config))
	}
	config.Log, config.Observe, config.Once, config.Paused = log, m.observe, once, paused
	if err := relayOn(ctx, db, config, h); err != nil || !once || ctx.Err() != nil {
		return err
	}
	return stillWaiting(ctx, db, config.Routes)
}

// relayOn runs the relay until it is told to stop, or with Once until nothing is left to do.
func relayOn(ctx context.Context, db database, config relay.Config, h *health) error {
	store, err := db.Store(config.Name, config.Lease)
	if err != nil {
		return errors.Join(failf(exitDatabase, "%w", err), closeSinks(config))
	}
	defer store.Close()
	config.Database = store
	r, err := relay.New(config)
	if err != nil {
		return errors.Join(failf(exitConfiguration, "%w", err), closeSinks(config))
	}
	snapshot := snapshotter(r.Snapshot)
	h.running.Store(&snapshot)
	config.Log.Info("working", "relay", config.Name)
	r.Run(ctx)
	config.Log.Info("stopped", "relay", config.Name)
	if refused := r.Snapshot().Refused; config.Once && refused != "" {
		return failf(exitNotAllowed, "%s", refused)
	}
	return nil
}

// closeSinks closes what a relay that never ran will not close.
func closeSinks(c relay.Config) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var errs []error
	for _, d := range c.Destinations {
		if err := d.Sink.Close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("close destination %s: %w", d.Name, err))
		}
	}
	return errors.Join(errs...)
}
