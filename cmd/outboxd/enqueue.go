package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/outbox"
)

func (p *program) enqueueCommand() *cobra.Command {
	var (
		m       outbox.Message
		data    string
		headers []string
	)
	cmd := &cobra.Command{
		Use: "enqueue", Short: "Write one message in a transaction of its own, and print its id", Args: noArgs(),
		Long: "enqueue is for trying and for scripts. An application writes its messages itself, in the transaction of the\n" +
			"change that they tell of.",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if m.Type == "" {
				return usagef("enqueue needs --type; see %s --help", cmd.CommandPath())
			}
			if cmd.Flags().Changed("data") {
				if m.Payload, err = p.readData(data); err != nil {
					return err
				}
			}
			if m.Headers, err = parseHeaders(headers); err != nil {
				return err
			}
			db, err := p.open()
			if err != nil {
				return err
			}
			defer db.Close()
			ids, err := db.Write(cmd.Context(), m)
			if err != nil {
				return writeError(m, err)
			}
			fmt.Fprintln(p.stdout, ids[0])
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&m.Type, "type", "", "kind of message; required")
	flags.StringVar(&m.AggregateType, "aggregatetype", "", "what it is about; with it, routes match this")
	flags.StringVar(&m.AggregateID, "aggregateid", "", "which one: Kafka's key")
	flags.StringVar(&data, "data", "", "payload: text, @FILE, or - for the standard input")
	flags.StringArrayVar(&headers, "header", nil, "`name=value` that travels with the message; repeatable")
	flags.DurationVar(&m.Delay, "delay", 0, "send it no sooner than after this `duration`, such as 10m")
	flags.StringVar(&m.ID, "id", "", "`UUID` of the message; without it one is made")
	flags.IntVar(&m.SchemaVersion, "schema-version", 1, "`version` of this type's payload")
	flags.StringVar(&m.ContentType, "content-type", "application/json", "media type of the payload")
	return cmd
}

// readData reads the payload, every byte of it.
func (p *program) readData(data string) ([]byte, error) {
	file, isFile := strings.CutPrefix(data, "@")
	switch {
	case data == "-":
		text, err := io.ReadAll(p.stdin)
		if err != nil {
			return nil, usagef("--data: cannot read the standard input: %w", err)
		}
		return text, nil
	case isFile:
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, usagef("--data: %w", fileError(err))
		}
		return text, nil
	}
	return []byte(data), nil
}

func parseHeaders(pairs []string) (map[string]string, error) {
	headers := map[string]string{}
	for _, pair := range pairs {
		name, value, found := strings.Cut(pair, "=")
		if _, twice := headers[name]; !found || name == "" || twice {
			return nil, usagef("--header wants name=value, each name once")
		}
		headers[name] = value
	}
	return headers, nil
}

// writeError says which flag cannot be, or that the id is taken.
func writeError(m outbox.Message, err error) error {
	var invalid *outbox.InvalidError
	switch {
	case errors.As(err, &invalid):
		return usagef("%s: %s", invalid.Field, invalid.Problem)
	case dialect.ClassOf(err) == dialect.Duplicate:
		return failf(exitNotAllowed, "a message of the id %s is there already: nothing was written", m.ID)
	}
	return err
}
