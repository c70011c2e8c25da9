package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/dialect"
)

// listPages is how many pages one call reads for a filter that fits few messages, before it says where to go on.
const listPages = 20

func (p *program) listCommand() *cobra.Command {
	var (
		out    output
		filter dialect.Filter
	)
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List messages, without their payloads", Args: noArgs(),
		Long: "list prints pending messages in the order in which they are claimed, failed ones by when they failed, all\n" +
			"others newest first. Where there are more, it says with which --cursor to go on.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			if filter.Limit < 1 || filter.Limit > 1000 {
				return usagef("--limit wants 1 to 1000")
			}
			db, err := p.open()
			if err != nil {
				return err
			}
			defer db.Close()
			var found []dialect.Listed
			page := dialect.Page{Next: filter.Cursor}
			for range listPages {
				part := filter
				part.Limit, part.Cursor = filter.Limit-len(found), page.Next
				if page, err = db.List(cmd.Context(), part); err != nil {
					return filterError(err)
				}
				found = append(found, page.Messages...)
				if page.Next == "" || len(found) >= filter.Limit {
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
	flags.StringVar(&filter.State, "state", "", "only `state`: pending, in_flight, done or failed")
	flags.StringVar(&filter.Type, "type", "", "only this `type`")
	flags.StringVar(&filter.RoutingKey, "routing-key", "", "only this routing `key`")
	flags.IntVar(&filter.Limit, "limit", 100, "at most so many messages, 1 to 1000")
	flags.StringVar(&filter.Cursor, "cursor", "", "go on where the list before ended")
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

// listRow is a message in a table: what fits a screen.
type listRow struct {
	ID         string     `json:"id"`
	State      string     `json:"state"`
	RoutingKey string     `json:"routing_key"`
	Type       string     `json:"type"`
	Attempts   int        `json:"attempts"`
	CreatedAt  time.Time  `json:"created_at"`
	DueAt      *time.Time `json:"due_at"`
	Reason     *string    `json:"reason"`
	ErrorClass *string    `json:"error_class"`
	Result     *string    `json:"result"`
}

func listRows(found []dialect.Listed) []listRow {
	out := make([]listRow, 0, len(found))
	for _, m := range found {
		out = append(out, listRow{
			m.ID, m.State, m.RoutingKey, m.Type, m.Attempts, m.CreatedAt, m.DueAt, m.Reason,
			m.ErrorClass, m.Result,
		})
	}
	return out
}
