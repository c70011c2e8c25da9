package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// listPages is how many pages one call reads for a filter that fits few messages, before it says where to go on.
const listPages = 20

func (p *program) listCommand() *cobra.Command {
	var (
		out    output
		filter relay.Filter
		limit  int
		cursor string
		dest   string
	)
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List messages, without their payloads", Args: noArgs(),
		Long: "list prints pending messages in the order in which they are claimed, failed ones by when they failed, all\n" +
			"others newest first. Where there are more, it says with which --cursor to go on.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			if limit < 1 || limit > 1000 {
				return usagef("--limit wants 1 to 1000")
			}
			if filter.Unresolved {
				if filter.State != "" && filter.State != relay.Failed {
					return usagef("--unresolved is about failed messages: leave --state out")
				}
				filter.State = relay.Failed
			}
			db, err := p.openFiltered(&filter, dest)
			if err != nil {
				return err
			}
			defer db.Close()
			var found []dialect.Listed
			page := dialect.Page{Next: cursor}
			for range listPages {
				if page, err = db.List(cmd.Context(), filter, limit-len(found), page.Next); err != nil {
					return filterError(err)
				}
				found = append(found, page.Messages...)
				if page.Next == "" || len(found) >= limit {
					break
				}
			}
			if page.Next != "" {
				fmt.Fprintln(p.stderr, "there may be more: go on with the same filter and --cursor "+page.Next)
			}
			if out.format == "table" {
				return rows(p.stdout, out, listRows(found))
			}
			return rows(p.stdout, out, found)
		},
	}
	flags := cmd.Flags()
	filterFlags(flags, &filter)
	destFlag(flags, &dest)
	flags.BoolVar(&filter.Unresolved, "unresolved", false, "only failed ones that wait for a person")
	flags.IntVar(&limit, "limit", 100, "at most so many messages, 1 to 1000")
	flags.StringVar(&cursor, "cursor", "", "go on where the list before ended")
	out.flag(cmd)
	return cmd
}

// filterError makes a wrong filter a mistake of the command line.
func filterError(err error) error {
	if errors.Is(err, dialect.ErrFilter) {
		return usagef("%w", err)
	}
	return err
}

// filterFlags are those of every command that works on the messages of a filter.
func filterFlags(flags *pflag.FlagSet, f *relay.Filter) {
	flags.StringVar((*string)(&f.State), "state", "", "only `state`: pending, in_flight, done or failed")
	flags.StringVar(&f.Type, "type", "", "only this `type`")
	flags.StringVar(&f.RoutingKey, "routing-key", "", "only this routing `key`")
	flags.StringVar(&f.Key, "key", "", "only this aggregateid")
	flags.IntVar(&f.SchemaVersion, "schema-version", 0, "only this `version` of the payload")
	flags.StringVar((*string)(&f.Reason), "reason", "", "only what failed for this `reason`")
	flags.StringVar(&f.ErrorClass, "error-class", "", "only what had this `class` of error last")
	flags.Var(moment{&f.Since}, "since", "only what came to its state at this `time` or later: as lists show it, a date in UTC, or a duration ago such as 2h")
	flags.Var(moment{&f.Until}, "until", "only what came to its state before this `time`")
}

// moment is the value of a flag: a time, or how long ago.
type moment struct{ at **time.Time }

// String is part of pflag.Value.
func (m moment) String() string {
	if m.at == nil || *m.at == nil {
		return ""
	}
	return (*m.at).Format(time.RFC3339)
}

// Set is part of pflag.Value.
func (m moment) Set(text string) error {
	if ago, err := time.ParseDuration(text); err == nil {
		at := time.Now().Add(-ago)
		*m.at = &at
		return nil
	}
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(form, text); err == nil {
			*m.at = &at
			return nil
		}
	}
	return errors.New("write a time as 2026-01-31T15:04:05Z, a date in UTC as 2026-01-31, or how long ago it was as 2h30m")
}

// Type is part of pflag.Value.
func (m moment) Type() string { return "time" }

// listRow is a message in a table: what fits a screen.
type listRow struct {
	ID         string        `json:"id"`
	State      string        `json:"state"`
	RoutingKey string        `json:"routing_key"`
	Type       string        `json:"type"`
	Key        *string       `json:"key"` // aggregateid, as --key has it
	Attempts   int           `json:"attempts"`
	CreatedAt  dialect.Time  `json:"created_at"`
	DueAt      *dialect.Time `json:"due_at"`
	Reason     *string       `json:"reason"`
	ErrorClass *string       `json:"error_class"`
	Result     *string       `json:"result"`
}

func listRows(found []dialect.Listed) []listRow {
	out := make([]listRow, 0, len(found))
	for _, m := range found {
		out = append(out, listRow{
			m.ID, m.State, m.RoutingKey, m.Type, m.AggregateID, m.Attempts, m.CreatedAt, m.DueAt,
			m.Reason, m.ErrorClass, m.Result,
		})
	}
	return out
}
