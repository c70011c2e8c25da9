package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// nextGroups is for how many groups a table is followed by what to run.
const nextGroups = 3

func (p *program) errorsCommand() *cobra.Command {
	var (
		out    output
		filter relay.Filter
		dest   string
	)
	cmd := &cobra.Command{
		Use: "errors", Short: "Group what went wrong: pending after a send that failed, or failed and not resolved", Args: noArgs(),
		Long: "errors counts messages by state, routing key, type, reason, error class and what is the same in their errors: numbers,\n" +
			"UUIDs and quoted texts are shown as …. It looks at a bounded number of messages, and says so where there are more.\n" +
			"Of a failed message AT is when it failed, of a pending one when it was created.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			db, err := p.openFiltered(&filter, dest)
			if err != nil {
				return err
			}
			defer db.Close()
			found, err := db.Errors(cmd.Context(), filter)
			if err != nil {
				return filterError(err)
			}
			p.tellBounds(found)
			list := make([]errorRow, 0, len(found.Groups))
			for _, g := range found.Groups {
				list = append(list, errorRow{g, nextOf(g)})
			}
			if out.format != "table" {
				return rows(p.stdout, out, list)
			}
			return printErrors(p.stdout, list)
		},
	}
	filterFlags(cmd.Flags(), &filter)
	destFlag(cmd.Flags(), &dest)
	out.flag(cmd)
	return cmd
}

// errorRow is a group, and what to run to see or to mend it.
type errorRow struct {
	dialect.ErrorGroup
	Next []string `json:"next"`
}

// tellBounds says what was not looked at.
func (p *program) tellBounds(found dialect.Errors) {
	if found.FailedMore {
		fmt.Fprintf(p.stderr, "of the failed messages that nobody resolved only the last %d were looked at: go on with outboxd list --unresolved\n", dialect.CountBound)
	}
	if found.PendingMore {
		fmt.Fprintln(p.stderr, "of the pending messages only some were looked at: those that have been due for the longest time, those that came due "+
			"last, and those whose next try comes first; --routing-key looks at more of one")
	}
	if found.KeysMore {
		fmt.Fprintf(p.stderr, "only the first %d routing keys were looked at: name one with --routing-key\n", dialect.GroupBound)
	}
}

// groupRow is a group in a table.
type groupRow struct {
	Messages   string       `json:"messages"`
	State      string       `json:"state"`
	RoutingKey string       `json:"routing_key"`
	Type       string       `json:"type"`
	Versions   string       `json:"versions"`
	Reason     *string      `json:"reason"`
	ErrorClass *string      `json:"error_class"`
	First      dialect.Time `json:"first_at"`
	Last       dialect.Time `json:"last_at"`
	Sample     string       `json:"sample_id"`
	Error      string       `json:"error"`
}

// printErrors prints the table, and for its first rows what to run next.
func printErrors(w io.Writer, list []errorRow) error {
	table := make([]groupRow, 0, len(list))
	for _, g := range list {
		table = append(table, groupRow{
			count(g.Messages, g.More), g.State, g.RoutingKey, g.Type, versionsOf(g.SchemaVersions), g.Reason, g.ErrorClass,
			g.FirstAt, g.LastAt, g.SampleID, g.Error,
		})
	}
	if err := printTable(w, table); err != nil {
		return err
	}
	for _, g := range list[:min(nextGroups, len(list))] {
		fmt.Fprintf(w, "\n%s %s of type %s, next:\n  %s\n", count(g.Messages, g.More), g.State, harmless(g.Type), strings.Join(g.Next, "\n  "))
	}
	return nil
}

func versionsOf(versions []int) string {
	texts := make([]string, len(versions))
	for i, v := range versions {
		texts[i] = strconv.Itoa(v)
	}
	return strings.Join(texts, ",")
}

// nextOf is what a person may run next about a group: look at one, hold back or mend them all.
func nextOf(g dialect.ErrorGroup) []string {
	same := selection(g)
	next := []string{"outboxd why " + g.SampleID}
	if g.State == string(relay.Pending) {
		pause := "outboxd pause --type " + shellWord(g.Type)
		if len(g.SchemaVersions) == 1 {
			pause += " --schema-version " + strconv.Itoa(g.SchemaVersions[0])
		}
		next = append(next, pause+" --for 30m")
	}
	if payloadMayBe(g) {
		next = append(next, "outboxd correct"+same+` --jq EXPRESSION --note "what was wrong with them"`)
	}
	if g.State == string(relay.Pending) {
		return append(next, "outboxd retry-now"+same)
	}
	return append(next, "outboxd replay"+same, "outboxd resolve"+same+` --note "why they need nothing more"`)
}

// payloadMayBe tells that a destination answered, so that the payload may be what is wrong.
func payloadMayBe(g dialect.ErrorGroup) bool {
	class := value(g.ErrorClass)
	return strings.HasPrefix(class, "http_4") || strings.HasPrefix(class, "http_5") || class == "too_large" || class == "invalid" || class == "program"
}

// selection are the flags that name the messages of a group, as far as flags can.
func selection(g dialect.ErrorGroup) string {
	words := " --state " + g.State
	flag := func(name, value string) {
		if value != "" {
			words += " --" + name + " " + shellWord(value)
		}
	}
	flag("routing-key", g.RoutingKey)
	flag("type", g.Type)
	if len(g.SchemaVersions) == 1 {
		flag("schema-version", strconv.Itoa(g.SchemaVersions[0]))
	}
	flag("reason", value(g.Reason))
	flag("error-class", value(g.ErrorClass))
	return words
}
