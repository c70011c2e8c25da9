package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// details is a message as `get` prints it.
type details struct {
	dialect.Message
	Sends         []dialect.Attempt `json:"outbox_attempt,omitempty"` // the rows of that table
	Payload       *string           `json:"payload,omitempty"`
	PayloadBase64 *string           `json:"payload_base64,omitempty"` // where it is no UTF-8

	timeline []event // where a table wants the sends
}

func (p *program) getCommand() *cobra.Command {
	var (
		out               output
		attempts, payload bool
	)
	cmd := &cobra.Command{
		Use: "get ID…", Short: "Show messages by their ids: exit 0, or 4 if one of them does not exist",
		Args: someIDs,
		RunE: func(cmd *cobra.Command, ids []string) error {
			if err := out.check(); err != nil {
				return err
			}
			db, err := p.open()
			if err != nil {
				return err
			}
			defer db.Close()
			found, missing, err := getAll(cmd.Context(), db, ids, attempts, payload)
			if err != nil {
				return err
			}
			if attempts && len(found) == 1 && len(found[0].Sends) == 0 {
				fmt.Fprintln(p.stderr, noSendOf(found[0].Message))
			}
			if out.format == "table" {
				err = p.printFound(cmd.Context(), db, found, attempts)
			} else {
				err = rows(p.stdout, out, found)
			}
			if err == nil && len(missing) > 0 {
				err = failf(exitNotFound, "%s", strings.Join(missing, "; "))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&attempts, "attempts", false, "with the sends that were recorded")
	cmd.Flags().BoolVar(&payload, "payload", false, "with the payload")
	out.flag(cmd)
	return cmd
}

// printFound prints messages, and with their sends also what else is known of their lives.
func (p *program) printFound(ctx context.Context, db database, found []details, attempts bool) (err error) {
	for i := range found {
		if !attempts {
			break
		}
		if found[i].timeline, err = readTimeline(ctx, db, found[i]); err != nil {
			return err
		}
	}
	return printDetails(p.stdout, found)
}

// noSend explains why nothing is shown of how a message was sent, whatever its state.
const noSend = "no send of it is recorded: one that is done at once leaves no row"

// noSendOf explains the same by the message's state.
func noSendOf(m dialect.Message) string {
	went := m.Attempts > 0 || m.Lapses > 0 || m.UnknownSince != nil
	switch {
	case m.State == string(relay.Finished):
		return noSend
	case m.State == string(relay.InFlight) && !went:
		return "no send of it is recorded yet: the one under way leaves a row when it ends, but where it is done at once"
	case went || m.Replays > 0:
		return noSend + ", and old rows are removed"
	case m.ErrorClass != nil:
		return "nothing of it went out: what could not be sent leaves no row, see error_class and last_error"
	case m.State == string(relay.Failed):
		return "nothing of it went out"
	}
	return "nothing of it went out yet"
}

// getAll reads messages one by one. missing says of each that does not exist that it does not.
func getAll(ctx context.Context, db inspector, ids []string, attempts, payload bool) (found []details, missing []string, err error) {
	for _, id := range ids {
		message, made, err := db.Get(ctx, id)
		if errors.Is(err, dialect.ErrNotFound) {
			missing = append(missing, err.Error())
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		d := details{Message: message}
		if attempts {
			d.Sends = made
		}
		if payload {
			if err := d.addPayload(ctx, db); err != nil {
				return nil, nil, err
			}
		}
		found = append(found, d)
	}
	return found, missing, nil
}

func (d *details) addPayload(ctx context.Context, db inspector) error {
	bytes, err := db.Payload(ctx, d.ID)
	if err != nil {
		return err
	}
	if text := string(bytes); utf8.Valid(bytes) {
		d.Payload = &text
		return nil
	}
	text := base64.StdEncoding.EncodeToString(bytes)
	d.PayloadBase64 = &text
	return nil
}

// printDetails prints a message as a list of its columns that are set, and below it its timeline and its payload.
func printDetails(w io.Writer, found []details) error {
	for i, d := range found {
		if i > 0 {
			fmt.Fprintln(w)
		}
		table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		v := reflect.ValueOf(d.Message)
		for j := range v.NumField() {
			if value := cell(v.Field(j)); value != "-" {
				fmt.Fprintf(table, "%s\t%s\n", v.Type().Field(j).Tag.Get("json"), harmless(value))
			}
		}
		if err := table.Flush(); err != nil {
			return err
		}
		if err := section(w, d.timeline); err != nil {
			return err
		}
		for _, payload := range []*string{d.Payload, d.PayloadBase64} {
			if payload != nil {
				fmt.Fprintf(w, "\n%s\n", *payload)
			}
		}
	}
	return nil
}
