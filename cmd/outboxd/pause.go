package main

import (
	"time"

	"github.com/spf13/cobra"

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
