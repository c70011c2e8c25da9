package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/relay"
)

func (p *program) correctCommand() *cobra.Command {
	r := &request{Operation: relay.Operation{Op: relay.OpCorrect}}
	var file string
	cmd := &cobra.Command{
		Use: "correct ID --payload-file FILE", Short: "Give a pending or failed message another payload, and send it",
		Long: "correct keeps the message's id and place. Where nothing of it went out yet, only the payload changes. Otherwise it begins\n" +
			"a new life under a new idempotency key. The old payload is kept in outbox_correction.",
		Args: exactArgs(1, "the id of one message"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				return usagef("correct needs --payload-file; see %s --help", cmd.CommandPath())
			}
			payload, err := p.readFile(file)
			if err != nil {
				return err
			}
			r.payloads = map[string][]byte{args[0]: payload}
			return p.ask(cmd.Context(), *r)
		},
	}
	r.flags(cmd.Flags())
	r.keyFlags(cmd)
	cmd.Flags().StringVar(&file, "payload-file", "", "`file` with the new payload, every byte of it; - for the standard input")
	return cmd
}

func (p *program) readFile(name string) ([]byte, error) {
	if name == "-" {
		text, err := io.ReadAll(p.stdin)
		if err != nil {
			return nil, usagef("--payload-file: cannot read the standard input: %w", err)
		}
		return text, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, usagef("--payload-file: %w", fileError(err))
	}
	return text, nil
}
