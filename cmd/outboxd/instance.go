package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// maxInstance is how long the name of an instance may be, in bytes.
const maxInstance = 100

// instances tells and says which instance the outbox belongs to.
type instances interface {
	Instance(ctx context.Context) (name string, err error)
	SetInstance(ctx context.Context, name, actor, note string) (before string, err error)
}

func (p *program) instanceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "instance", Short: "Show which instance of the application the outbox belongs to, or say that it is another one", Args: noArgs(),
		Long: "An outbox belongs to the instance that the first relay's configuration named. A relay of another one, or of none, sends\n" +
			"nothing: so a copy of a database is not sent from by mistake. Without set it prints the name, and nothing where there is none.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := p.open()
			if err != nil {
				return err
			}
			defer db.Close()
			name, err := db.Instance(cmd.Context())
			if err == nil && name != "" {
				fmt.Fprintln(p.stdout, name)
			}
			return err
		},
	}
	cmd.AddCommand(p.instanceSetCommand())
	return cmd
}

func (p *program) instanceSetCommand() *cobra.Command {
	var note string
	var yes bool
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Give the outbox to an instance", Args: exactArgs(1, "the name of an instance"),
		Long: "Relays of that instance begin within about a second, and those of the one before stop. It is written down as an operation.",
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if name == "" || len(name) > maxInstance {
				return usagef("the name of an instance has 1 to %d bytes", maxInstance)
			}
			if note == "" {
				return usagef("instance set wants --note: somebody will ask why relays began to send from this outbox")
			}
			db, err := p.open()
			if err != nil {
				return err
			}
			defer db.Close()
			before, err := db.Instance(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintf(p.stderr, "instance: %s, after %s\n", name, orElse(before, "none"))
			if !yes {
				if err := p.confirm(); err != nil {
					return err
				}
			}
			_, err = db.SetInstance(cmd.Context(), name, actor(), note)
			return err
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "why, for whoever looks later")
	cmd.Flags().BoolVar(&yes, "yes", false, "ask no question")
	return cmd
}
