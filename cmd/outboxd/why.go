package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/dialect"
)

// answer is what `why` says of one message.
type answer struct {
	ID       string   `json:"id"`
	State    string   `json:"state"`
	Why      string   `json:"why"`      // it is where it is
	Next     string   `json:"next"`     // what will happen, or what a person can do
	Commands []string `json:"commands"` // what Next speaks of, in its order
}

func (p *program) whyCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "why ID…", Short: "Say why a message is where it is, and what comes next: exit 0, or 4 if one of them does not exist",
		Long: "why names what a message waits for, why its last send failed, who paused it or holds it, and what mends that. With a\n" +
			"configuration it also knows the message's route, its budget and how long its destination remembers a key; without one it\n" +
			"says what it does not know.",
		Args: someIDs,
		RunE: func(cmd *cobra.Command, ids []string) error {
			if err := out.check(); err != nil {
				return err
			}
			l, db, err := p.connect()
			if err != nil {
				return err
			}
			defer db.Close()
			answers, missing, err := l.explainAll(cmd.Context(), db, ids)
			if err != nil {
				return err
			}
			if out.format == "table" {
				printAnswers(p.stdout, answers)
			} else if err := rows(p.stdout, out, answers); err != nil {
				return err
			}
			if len(missing) > 0 {
				return failf(exitNotFound, "%s", strings.Join(missing, "; "))
			}
			return nil
		},
	}
	out.flag(cmd)
	return cmd
}

// explainAll explains messages one by one. missing says of each that does not exist that it does not.
func (l *loaded) explainAll(ctx context.Context, db inspector, ids []string) (answers []answer, missing []string, err error) {
	status, err := db.Status(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		f, err := readFacts(ctx, db, id)
		if errors.Is(err, dialect.ErrNotFound) {
			missing = append(missing, err.Error())
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		f.relays, f.breakers, f.pauses, f.instance = status.Relays, status.Breakers, status.Pauses, status.Instance
		f.plan = l.planFor(f.message)
		answers = append(answers, explain(f))
	}
	return answers, missing, nil
}

// readFacts reads what the database knows of one message. One that leaves its state between two looks is looked at anew,
// once: it then has another lease, or none to look for.
func readFacts(ctx context.Context, db inspector, id string) (f facts, err error) {
	for range 2 {
		if f.message, f.attempts, err = db.Get(ctx, id); err != nil {
			return f, err
		}
		now, lease, err := db.Lease(ctx, f.message.LeaseID)
		if err != nil {
			return f, err
		}
		f.now, f.lease = now.Time, lease
		if lease != nil || f.message.State != "in_flight" {
			break
		}
	}
	return f, nil
}

func printAnswers(w io.Writer, answers []answer) {
	for i, a := range answers {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s is %s: %s.\n", a.ID, a.State, a.Why)
		fmt.Fprintf(w, "Next: %s.\n", a.Next)
		for _, command := range a.Commands {
			fmt.Fprintln(w, "  "+command)
		}
	}
}
