package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/dialect"
	programsink "github.com/outboxd/outboxd/relay/sink/program"
	"github.com/outboxd/outboxd/relay/sink/webhook"
)

func (p *program) destCommand() *cobra.Command {
	cmd := group("dest", "List the destinations, and try one without sending anything to it", "")
	cmd.AddCommand(p.destListCommand(), p.destTestCommand())
	return cmd
}

// destRow is a destination in a list.
type destRow struct {
	Name   string  `json:"name"`
	Kind   string  `json:"kind"`
	Width  int     `json:"width"`
	Rate   *string `json:"rate"`
	Dedupe *string `json:"dedupe"`
	Routes string  `json:"routes"` // their matches
	State  *string `json:"state"`  // as the relays that are alive told it last; nil: none did
	Paused *string `json:"paused"` // for how long; nil: it is not
}

func (p *program) destListCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the destinations of the configuration", Args: noArgs(),
		Long: "list prints the destinations of the configuration. Where that names a database, it also tells how the relays that\n" +
			"are alive find them, and what is paused.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			l, err := p.load()
			if err != nil {
				return err
			}
			list := destRows(l.config)
			told := p.tellState(cmd.Context(), l, list)
			return cmp.Or(rows(p.stdout, out, list), told)
		},
	}
	out.flag(cmd)
	return cmd
}

func destRows(c config) []destRow {
	var list []destRow
	for _, name := range slices.Sorted(maps.Keys(c.Destinations)) {
		d := c.Destinations[name]
		row := destRow{Name: name, Width: d.Width}
		if d.Rate != "" {
			row.Rate = new(string(d.Rate))
		}
		switch {
		case d.Kafka != nil:
			row.Kind, row.Width = "kafka", orElse(d.Width, kafkaWidth)
		case d.Webhook != nil:
			row.Kind, row.Width = "webhook", orElse(d.Width, webhook.DefaultWidth)
			row.Dedupe = new(string(d.Webhook.Dedupe))
		case d.Program != nil:
			row.Kind, row.Width = "program", orElse(d.Width, programsink.DefaultWidth)
			row.Dedupe = new(string(d.Program.Dedupe))
		case d.Stdout != nil:
			row.Kind, row.Width = "stdout", orElse(d.Width, stdoutWidth)
		}
		var routes []string
		for i := range c.Routes {
			if c.Routes[i].To == name {
				routes = append(routes, c.Routes[i].Match)
			}
		}
		row.Routes = strings.Join(routes, ", ")
		list = append(list, row)
	}
	return list
}

// tellState asks the database, where there is one, how the destinations are. The list is good without its answer.
func (p *program) tellState(ctx context.Context, l *loaded, list []destRow) error {
	if l.config.Database.source().given() == 0 {
		return nil
	}
	db, err := l.openDatabase(p.env)
	if err != nil {
		return err
	}
	defer db.Close()
	status, err := db.Status(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		list[i].State = stateOf(status, list[i].Name)
		list[i].Paused = pauseOf(status.Pauses, list[i].Name)
	}
	return nil
}

// stateOf is ok, or which relays find what else, as those that are alive told it last.
func stateOf(status dialect.Status, name string) *string {
	alive, told := aliveOf(status.Relays), false
	for _, r := range alive {
		told = told || slices.Contains(r.Destinations, name)
	}
	var other []string
	for _, b := range status.Breakers {
		destination, routingKey, ofKey := strings.Cut(b.Name, "/")
		if _, there := alive[b.Relay]; destination != name || !there || b.State == "ok" {
			continue
		}
		words := b.State + " at " + b.Relay
		if ofKey {
			words += " for " + routingKey
		}
		other = append(other, words)
	}
	switch {
	case len(other) > 0:
		return new(strings.Join(other, ", "))
	case told:
		return new("ok")
	}
	return nil
}

// pauseOf says how long a destination is paused, by itself or with everything.
func pauseOf(pauses []dialect.PauseStatus, name string) *string {
	for _, s := range pauses {
		if s.Target == "destination:"+name || s.Target == "everything" {
			return new(left(s.Left))
		}
	}
	return nil
}

// destination finds a destination of the configuration.
func (c config) destination(name string) (destinationConfig, error) {
	d, there := c.Destinations[name]
	if there {
		return d, nil
	}
	names := slices.Sorted(maps.Keys(c.Destinations))
	if len(names) == 0 {
		return d, usagef("destination %q is not known without its configuration: name the file with -c", name)
	}
	return d, failf(exitNotFound, "the configuration has no destination %q; it has %s", name, listed(names))
}

// steps prints what a test tells, and counts.
type steps struct {
	p           *program
	all, failed int
}

func (s *steps) told(step, words string, err error) {
	s.all++
	verdict := "ok"
	if err != nil {
		s.failed++
		verdict, words = "failed", err.Error()
	}
	fmt.Fprintf(s.p.stdout, "%-6s  %s", verdict, step)
	if words != "" {
		fmt.Fprint(s.p.stdout, ": "+strings.Join(strings.Fields(words), " "))
	}
	fmt.Fprintln(s.p.stdout)
}
