package main

import (
	"context"
	"errors"
	"sync"

	"github.com/spf13/cobra"
)

func (p *program) runCommand() *cobra.Command {
	var once, paused bool
	cmd := &cobra.Command{
		Use: "run", Short: "Run the relay until it is told to stop", Args: noArgs(),
		Long: "run sends what is in the outbox until SIGTERM or SIGINT; a second one ends it at once. SIGHUP lets it read its\n" +
			"configuration again: routes, policies and limits change, and nothing under way is dropped.\n" +
			"With --once it ends when nothing that it may send is due: exit 0, or 8 if messages still wait.\n" +
			"With several --config, each of an outbox of its own, one process works on all of them, and a fault of one stops no other.\n" +
			"With --paused everything is paused before the first claim, as after a restore: look first, then outboxd resume --everything.",
		RunE: func(cmd *cobra.Command, _ []string) error { return p.runRelay(cmd.Context(), once, paused) },
	}
	cmd.Flags().BoolVar(&once, "once", false, "end when nothing that may be sent is due or in flight")
	cmd.Flags().BoolVar(&paused, "paused", false, "pause everything before the first claim, until somebody resumes it")
	return cmd
}

// runRelay is the life of the process: configuration, health checks, and then each outbox's own: database, relay.
func (p *program) runRelay(ctx context.Context, once, paused bool) error {
	hangups := p.hangups.listen() // first of all: one that comes early is heard as soon as there is something to reload
	outboxes, err := p.outboxes()
	if err != nil {
		return err
	}
	first := outboxes[0]
	trace := openTracing(ctx, p.env, first.log)
	defer trace.Close()
	for i, d := range outboxes {
		d.once, d.trace = once, trace
		if paused {
			d.pauseOnce()
		}
		if err := d.open(); err != nil {
			for _, opened := range outboxes[:i] {
				err = errors.Join(err, opened.close())
			}
			return err
		}
	}
	series, checks := newRegistry(builtFrom()), []*health{}
	for _, d := range outboxes {
		d.serve(ctx, series)
		checks = append(checks, d.health)
	}
	defer serve(ctx, first.loaded.config.HTTP.Listen, handler(series, checks...), first.log)()

	working, cancel := context.WithCancel(ctx)
	defer cancel()
	go reloadAll(working, hangups, outboxes)
	return runAll(ctx, outboxes)
}

// runAll runs the outboxes side by side, until all have ended.
func runAll(ctx context.Context, outboxes []*daemon) error {
	errs := make([]error, len(outboxes))
	var running sync.WaitGroup
	for i, d := range outboxes {
		running.Go(func() { errs[i] = d.keep(ctx) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// reloadAll lets each outbox read its configuration anew at every SIGHUP.
func reloadAll(ctx context.Context, hangups <-chan struct{}, outboxes []*daemon) {
	for {
		select {
		case <-hangups:
			for _, d := range outboxes {
				d.reload()
			}
		case <-ctx.Done():
			return
		}
	}
}
