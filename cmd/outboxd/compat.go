package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/dialect"
)

// judged is a kind of message with what a configuration says to it.
type judged struct {
	dialect.Kind
	Accepted bool   `json:"accepted"`
	Why      string `json:"why"` // it is not, and what would; or where it goes
}

// compatibility is what compat tells.
type compatibility struct {
	Accepted bool              `json:"accepted"` // every kind is
	Kinds    []judged          `json:"kinds"`    // those that are not accepted first
	Horizons []dialect.Horizon `json:"horizons"` // where there is more than was looked at
}

func (p *program) compatCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "compat", Short: "Tell whether a configuration accepts the messages that are there: a gate for pipelines", Args: noArgs(),
		Long: "compat judges the configuration that --config names, before any relay has it, by the messages that are in the table now:\n" +
			"for each routing key, type and schema version that waits, is in flight, failed, or is done and can be replayed, whether\n" +
			"a route takes it and a policy accepts its version. It reads a bounded number of messages, and says where there are more:\n" +
			"10,000 at either end of each routing key that waits, the last 10,000 that failed, and for done ones the last 100,000 of\n" +
			"all. Exit 0 if all are accepted, 1 if one is not.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			l, db, err := p.connect()
			if err != nil {
				return err
			}
			defer db.Close()
			if err := l.wantsWork(); err != nil {
				return err
			}
			found, err := db.Kinds(cmd.Context())
			if err != nil {
				return err
			}
			return p.printCompatibility(out, l.judge(found))
		},
	}
	out.flag(cmd)
	return cmd
}

// judge says of each kind of message whether the configuration accepts it.
func (l *loaded) judge(found dialect.Kinds) compatibility {
	c := compatibility{Accepted: true, Kinds: []judged{}, Horizons: found.Horizons}
	for _, k := range found.Kinds {
		accepted, why := l.accepts(k)
		c.Accepted = c.Accepted && accepted
		c.Kinds = append(c.Kinds, judged{k, accepted, why})
	}
	slices.SortStableFunc(c.Kinds, func(a, b judged) int {
		switch {
		case a.Accepted == b.Accepted:
			return 0
		case b.Accepted:
			return -1
		}
		return 1
	})
	return c
}

// accepts tells whether a route takes a kind of message and its policy accepts the version, and why not, or where it goes.
func (l *loaded) accepts(k dialect.Kind) (accepted bool, why string) {
	i := l.config.routeOf(k.RoutingKey)
	if i < 0 {
		return false, "no route for the routing key"
	}
	r := &l.config.Routes[i]
	key := r.policyKey(k.Type)
	if taken := l.policy(r, key).Versions; len(taken) > 0 && !slices.Contains(taken, k.SchemaVersion) {
		return false, policyPath(i, key) + " accepts " + versions(taken)
	}
	return true, "goes to " + r.To
}

// kindRow is a kind of message in a table.
type kindRow struct {
	Accepted   string       `json:"accepted"`
	RoutingKey string       `json:"routing_key"`
	Type       string       `json:"type"`
	Version    int          `json:"version"`
	State      string       `json:"state"`
	Messages   string       `json:"messages"`
	CreatedAt  dialect.Time `json:"oldest"`
	ID         string       `json:"id"`
	Why        string       `json:"why"`
}

func (c compatibility) rows() []kindRow {
	list := make([]kindRow, 0, len(c.Kinds))
	for _, k := range c.Kinds {
		state := k.State
		if k.Resolved {
			state += ", resolved"
		}
		list = append(list, kindRow{
			either(k.Accepted, "yes", "NO"), k.RoutingKey, k.Type, k.SchemaVersion, state, count(k.Messages, k.More), k.CreatedAt, k.ID, k.Why,
		})
	}
	return list
}

// refused counts the kinds that are not accepted.
func (c compatibility) refused() (n int) {
	for _, k := range c.Kinds {
		if !k.Accepted {
			n++
		}
	}
	return n
}

// reach says in words what was not looked at.
func reach(h dialect.Horizon) string {
	what := h.State + " messages"
	if h.RoutingKey != "" {
		what += " of routing key " + h.RoutingKey
	}
	switch h.State {
	case "pending":
		return fmt.Sprintf("only the ends of the queue of %s were looked at, %d messages", what, h.Messages)
	case "done":
		return fmt.Sprintf("for %s only the last %d messages of all were looked at, back to %s", what, h.Messages, h.Back.Format(timeForm))
	}
	return fmt.Sprintf("of %s only the last %d were looked at, back to %s", what, h.Messages, h.Back.Format(timeForm))
}

func (p *program) printCompatibility(out output, c compatibility) error {
	var err error
	switch out.format {
	case "json":
		err = printJSON(p.stdout, c, "  ")
	case "jsonl":
		err = rows(p.stdout, out, c.Kinds)
	default:
		err = printTable(p.stdout, c.rows())
	}
	if err != nil {
		return err
	}
	for _, h := range c.Horizons {
		fmt.Fprintln(p.stderr, reach(h)+": another kind may lie beyond")
	}
	if n := c.refused(); n > 0 {
		return failf(exitUnexpected, "this configuration does not accept %d of %d kinds of message that are there: they would wait, or could not be replayed",
			n, len(c.Kinds))
	}
	fmt.Fprintf(p.stderr, "this configuration accepts %s\n", either(len(c.Kinds) == 0, "what is there: nothing", fmt.Sprintf("all %d kinds of message that are there", len(c.Kinds))))
	return nil
}
