package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (p *program) runCommand() *cobra.Command {
	var once, paused bool
	cmd := &cobra.Command{
		Use: "run", Short: "Run the relay until it is told to stop", Args: noArgs(),
		Long: "run sends what is in the outbox until SIGTERM or SIGINT; a second one ends it at once. SIGHUP lets it read its\n" +
			"configuration again: routes, policies and limits change, and nothing under way is dropped.\n" +
			"With --once it ends when nothing that it may send is due: exit 0, or 8 if messages still wait.\n" +
			"With --paused everything is paused before the first claim, as after a restore: look first, then outboxd resume --everything.",
		RunE: func(cmd *cobra.Command, _ []string) error { return p.runRelay(cmd.Context(), once, paused) },
	}
	cmd.Flags().BoolVar(&once, "once", false, "end when nothing that may be sent is due or in flight")
	cmd.Flags().BoolVar(&paused, "paused", false, "pause everything before the first claim, until somebody resumes it")
	return cmd
}

// runRelay is the life of the daemon: configuration, health checks, and then the outbox's own: database, relay.
func (p *program) runRelay(ctx context.Context, once, paused bool) error {
	l, err := p.load()
	if err != nil {
		return err
	}
	d := &daemon{program: p, file: l.file, loaded: l, log: newLog(p.stderr, l.config.Log), once: once, paused: paused}
	for _, words := range l.warnings {
		d.log.Warn("configuration", "warning", words)
	}
	d.trace = openTracing(ctx, p.env, d.log)
	defer d.trace.Close()
	if err := d.open(); err != nil {
		return err
	}
	d.serve(ctx, newRegistry(builtFrom()))
	defer serve(ctx, l.config.HTTP.Listen, d.health.handler(d.metrics), d.log)()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hangups := p.hangups.listen()
	go func() {
		for {
			select {
			case <-hangups:
				d.reload()
			case <-ctx.Done():
				return
			}
		}
	}()
	return d.run(ctx)
}
