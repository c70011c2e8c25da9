package main

import (
	"github.com/spf13/cobra"

	programsink "github.com/outboxd/outboxd/relay/sink/program"
)

// ownCommands are what a relay runs of this very program beside the programs that it executes. Nobody types them.
func (p *program) ownCommands() []*cobra.Command {
	return []*cobra.Command{
		{
			Use: programsink.HoldCommand, Hidden: true, DisableFlagParsing: true,
			RunE: func(_ *cobra.Command, args []string) error { return programsink.Hold(args) },
		},
		{
			Use: programsink.GuardCommand, Hidden: true, DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error {
				programsink.Guard(p.stdin)
				return nil
			},
		},
	}
}
