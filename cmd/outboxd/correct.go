package main

import (
	"bytes"
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/relay"
)

func (p *program) correctCommand() *cobra.Command {
	r := &request{Operation: relay.Operation{Op: relay.OpCorrect}, correcting: &correcting{}}
	var file, expression string
	cmd := &cobra.Command{
		Use: "correct ID --payload-file FILE | correct [ID…] --jq EXPR", Short: "Give pending or failed messages another payload, and send them",
		Long: "correct keeps the message's id and place. Where nothing of it went out yet, only the payload changes. Otherwise it begins\n" +
			"a new life under a new idempotency key. The old payload is kept in outbox_correction. A message whose payload changes\n" +
			"between the look and the correction is left out.\n\n" +
			"--jq reads the payload of each message that the ids or the filter name, pending or failed, and makes of it what a jq\n" +
			"expression says. It shows the first three differences, counts, and asks; payloads that stay as they are, are left out.\n" +
			"Numbers that the expression does not calculate with keep their digits; keys come out in the order of the alphabet.",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r.correcting.ids = args
			switch {
			case (file == "") == (expression == ""):
				return usagef("correct needs --payload-file for one message, or --jq for many; see %s --help", cmd.CommandPath())
			case file != "" && len(args) != 1:
				return usagef("%s takes the id of one message with --payload-file; see %s --help", cmd.CommandPath(), cmd.CommandPath())
			case file != "":
				r.correcting.change, err = p.newPayload(file)
			case len(args) == 0 && r.Order.Empty():
				return usagef("an empty filter would be all messages: name ids, a state, a type, a routing key or another field")
			default:
				r.correcting.change, err = newExpression(expression)
			}
			if err != nil {
				return err
			}
			return p.ask(cmd.Context(), *r)
		},
	}
	r.filterFlags(cmd.Flags())
	r.keyFlags(cmd)
	cmd.Flags().StringVar(&file, "payload-file", "", "`file` with the new payload, every byte of it; - for the standard input")
	cmd.Flags().StringVar(&expression, "jq", "", "`expression` of jq that makes the new payload of the old one")
	cmd.Flags().BoolVar(&r.correcting.skipErrors, "skip-errors", false, "leave out messages of which the expression makes no new payload")
	return cmd
}

// newPayload is the content of a file, whatever the old payload is.
func (p *program) newPayload(file string) (change, error) {
	payload, err := p.readFile(file)
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, old []byte) ([]byte, error) {
		if bytes.Equal(old, payload) {
			return nil, errUnchanged
		}
		return payload, nil
	}, nil
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
