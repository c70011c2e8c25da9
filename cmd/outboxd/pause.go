package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

func (p *program) pauseCommand() *cobra.Command {
	r := &request{Operation: relay.Operation{Op: relay.OpPause}}
	cmd := p.steeringCommand(r, "pause [DESTINATION]", "Send nothing to a destination, of a routing key or of a type for a while",
		"All relays honour a pause within a second, and a starting one before its first claim. What is under way ends as it\n"+
			"would. What waits grows older, and is charged nothing.")
	cmd.Flags().DurationVar((*time.Duration)(&r.Order.For), "for", 0, "for how long, such as 30m")
	cmd.Flags().BoolVar(&r.Order.Indefinitely, "indefinitely", false, "until somebody resumes it")
	return cmd
}

func (p *program) resumeCommand() *cobra.Command {
	r := &request{Operation: relay.Operation{Op: relay.OpResume}}
	return p.steeringCommand(r, "resume [DESTINATION]", "End a pause before its time",
		"resume also makes due at once what the pause of a type turned back.")
}

// steeringCommand is a command for what can be paused.
func (p *program) steeringCommand(r *request, use, short, long string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		Long: long + "\n\nName one: a destination, --routing-key, --type (with or without --schema-version), or --everything.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%s takes the name of one destination; see %s --help", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				r.Order.Destination = args[0]
			}
			return p.ask(cmd.Context(), *r)
		},
	}
	flags := cmd.Flags()
	r.flags(flags)
	flags.StringVar(&r.Order.RoutingKey, "routing-key", "", "all of this routing `key`")
	flags.StringVar(&r.Order.Type, "type", "", "all of this `type`")
	flags.IntVar(&r.Order.SchemaVersion, "schema-version", 0, "of the type only this `version`")
	flags.BoolVar(&r.Order.Everything, "everything", false, "all that there is")
	return cmd
}

// warnOfTarget says that a pause or a resume names nothing that is there, which may be a slip of the pen. It is asked for
// all the same: a configuration may come that has it, and a pause that was asked for may not be applied yet.
func (p *program) warnOfTarget(ctx context.Context, db inspector, r request) error {
	status, err := db.Status(ctx)
	if err != nil {
		return err
	}
	target := r.Order.Target()
	served, alive := map[string]bool{}, aliveOf(status.Relays)
	for _, found := range alive {
		for _, name := range found.Destinations {
			served[name] = true
		}
	}
	switch {
	case r.Op == relay.OpPause && target.Destination != "" && len(alive) > 0 && !served[target.Destination]:
		fmt.Fprintf(p.stderr, "no relay that is alive has a destination %q; they have %s\n",
			target.Destination, listed(slices.Sorted(maps.Keys(served))))
	case r.Op == relay.OpResume && !slices.ContainsFunc(status.Pauses, func(s dialect.PauseStatus) bool { return s.Target == target.String() }):
		var paused []string
		for _, s := range status.Pauses {
			paused = append(paused, s.Target)
		}
		fmt.Fprintf(p.stderr, "%s is not paused; paused now: %s\n", target, listed(paused))
	}
	return nil
}
