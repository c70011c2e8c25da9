package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/dialect"
)

// report is the status with what is wrong in words, the worst first.
type report struct {
	Problems []string `json:"problems"`
	dialect.Status
}

func (p *program) statusCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "status", Short: "Show on one screen how the outbox is doing, and what is wrong in words", Args: noArgs(),
		Long: "status exits with 0 whatever it found. With a configuration it also tells which messages have no route.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			l, db, err := p.connect()
			if err != nil {
				return err
			}
			defer db.Close()
			status, err := db.Status(cmd.Context())
			if err != nil {
				return err
			}
			r := report{Problems: problemsOf(status, l.config.Routes), Status: status}
			switch out.format {
			case "json":
				return printJSON(p.stdout, r, "  ")
			case "jsonl":
				return printJSON(p.stdout, r, "")
			}
			return r.print(p.stdout)
		},
	}
	out.flag(cmd)
	return cmd
}

type relayRow struct {
	Relay   string       `json:"relay"`
	Host    string       `json:"host"`
	Version string       `json:"version"`
	Started dialect.Time `json:"started"`
	Seen    string       `json:"last seen"`
	Serves  string       `json:"destinations"`
}

type waitsRow struct {
	RoutingKey string      `json:"routing key"`
	Why        dialect.Why `json:"waits"`
	Messages   string      `json:"messages"`
	Oldest     dialect.Age `json:"oldest"`
}

type failedRow struct {
	RoutingKey string  `json:"routing key"`
	Type       string  `json:"type"`
	Reason     string  `json:"failed"`
	ErrorClass *string `json:"error"`
	Messages   string  `json:"messages"`
	Latest     string  `json:"the last"`
}

type breakerRow struct {
	Name      string `json:"destination"`
	Relay     string `json:"relay"`
	State     string `json:"state"`
	Width     int    `json:"width"`
	LastError string `json:"last error"`
}

type pauseRow struct {
	Target string `json:"paused"`
	Actor  string `json:"by"`
	Note   string `json:"note"`
	Left   string `json:"for another"`
}

// print shows what is wrong, and then the tables that have something in them.
func (r report) print(w io.Writer) error {
	if len(r.Problems) == 0 {
		fmt.Fprintln(w, "All is well.")
	}
	for _, words := range r.Problems {
		fmt.Fprintln(w, "! "+harmless(words))
	}
	var relays []relayRow
	for _, s := range r.Relays {
		relays = append(relays, relayRow{
			s.Name, s.Host, s.Version, s.StartedAt, s.SeenFor.String() + " ago",
			serves(s.Destinations),
		})
	}
	var waits []waitsRow
	for _, s := range r.Waiting {
		waits = append(waits, waitsRow{s.RoutingKey, s.Why, count(s.Messages, s.More), s.Oldest})
	}
	var failed []failedRow
	for _, s := range r.Failed {
		failed = append(failed, failedRow{s.RoutingKey, s.Type, s.Reason, s.ErrorClass, count(s.Messages, s.More), s.Latest.String() + " ago"})
	}
	var breakers []breakerRow
	for _, s := range r.Breakers {
		breakers = append(breakers, breakerRow{s.Name, s.Relay, s.State, s.Width, s.LastError})
	}
	var pauses []pauseRow
	for _, s := range r.Pauses {
		pauses = append(pauses, pauseRow{s.Target, s.Actor, s.Note, left(s.Left)})
	}
	return cmp.Or(section(w, relays), section(w, pauses), section(w, waits), section(w, failed), section(w, breakers))
}

// serves says what a relay works for. One that stands by, or was refused, tells of no destinations.
func serves(destinations []string) string {
	if len(destinations) == 0 {
		return "none: it stands by, or is refused"
	}
	return strings.Join(destinations, ", ")
}

// left says how long a pause goes on.
func left(d *dialect.Age) string {
	if d == nil {
		return "until it is resumed"
	}
	return d.String()
}

// section prints a table after an empty line, and nothing where it has no row.
func section[T any](w io.Writer, list []T) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return printTable(w, list)
}
