package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	pacing "golang.org/x/time/rate"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

const maxDrill = 1000 // messages of one drill

// drill sends done messages of a destination once more, one after the other, and compares the answers.
type drill struct {
	*program
	l     *loaded
	db    database
	to    relay.Destination
	count int
	since time.Duration
	out   output
	note  string
	yes   bool

	paused int // messages that it left out, since a pause of something else than the destination holds them
}

func (p *program) drillCommand() *cobra.Command {
	d := &drill{program: p}
	var destination string
	cmd := &cobra.Command{
		Use: "drill", Short: "Send done messages again, in staging, and compare the answers: does the receiver do the work twice?", Args: noArgs(),
		Long: "drill takes messages of a destination that were done in the last minutes and sends each of them once more, as the relay\n" +
			"did: the same bytes under the same idempotency key. A receiver that remembers its keys gives the first answer again. One\n" +
			"that does not DOES THE WORK TWICE, and mostly betrays itself by another answer: so it is for staging, by hand, and never\n" +
			"on by itself. It works for webhooks and programs; a broker keeps no answers. It sends nothing that is paused, and nothing\n" +
			"of an outbox that belongs to another instance. The messages are not touched. What came of it is written into\n" +
			"outbox_operation, for outboxd evidence.\n\n" +
			"Exit 0 if all were answered alike, 1 if one was not, 8 if some got no answer, 5 if there was nothing to send, 7 if the\n" +
			"destination cannot be reached.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case destination == "":
				return usagef("drill needs --destination; see outboxd drill --help")
			case d.count < 1 || d.count > maxDrill:
				return usagef("--count wants 1 to %d", maxDrill)
			case d.since <= 0:
				return usagef("--since wants how long ago, such as 10m")
			}
			if err := d.out.check(); err != nil {
				return err
			}
			return d.run(cmd.Context(), destination)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&destination, "destination", "", "the `name` of the destination")
	flags.IntVar(&d.count, "count", 10, "send at most so many messages again, 1 to 1000")
	flags.DurationVar(&d.since, "since", 10*time.Minute, "only messages that were done so long ago at most")
	flags.StringVar(&d.note, "note", "", "why, for whoever looks later")
	flags.BoolVar(&d.yes, "yes", false, "ask no question")
	d.out.flag(cmd)
	return cmd
}

func (d *drill) run(ctx context.Context, name string) (err error) {
	if d.l, err = d.load(); err != nil {
		return err
	}
	c, err := d.l.config.destination(name)
	if err != nil {
		return err
	}
	if err := drillable(name, c); err != nil {
		return err
	}
	if d.db, err = d.l.openDatabase(d.env); err != nil {
		return err
	}
	defer d.db.Close()
	messages, err := d.find(ctx, name, c.dedupe().Window)
	if err != nil {
		return err
	}
	if d.paused > 0 {
		fmt.Fprintf(d.stderr, "drill: left out %s whose routing key, type or version is paused\n", count(d.paused, false)+either(d.paused == 1, " message", " messages"))
	}
	if len(messages) == 0 {
		return failf(exitNoMatch, "no message of destination %s was done in the last %s: nothing was sent", name, d.since)
	}
	fmt.Fprintf(d.stderr, "drill: %s of destination %s %s once more, under the same %s. A receiver that does not remember its keys\n"+
		"DOES THE WORK TWICE: go on only where that harms nobody, such as in staging.\n", counted(len(messages), "done message"), name,
		either(len(messages) == 1, "goes out", "go out"), either(len(messages) == 1, "key", "keys"))
	if !d.yes {
		if err := d.confirm(); err != nil {
			return err
		}
	}
	d.to = c.limits(name)
	if d.to.Sink, err = d.l.sink(name, parts{env: d.env, out: io.Discard, log: slog.New(slog.DiscardHandler)}); err != nil {
		return err
	}
	told, list, sendErr := d.sendAll(ctx, messages)
	closed := closeSinks(relay.Config{Destinations: []relay.Destination{d.to}})
	if told.Sent > 0 {
		recording := context.WithoutCancel(ctx) // what went out is told, also where somebody stops the rest
		op := relay.Operation{Op: relay.OpDrill, Actor: actor(), Note: d.note}
		if _, err := d.db.Record(recording, op, told); err != nil {
			sendErr = cmp.Or(sendErr, err)
		}
	}
	if err := rows(d.stdout, d.out, list); err != nil {
		return err
	}
	fmt.Fprintln(d.stderr, drillWords(told))
	return cmp.Or(sendErr, drillError(told), closed)
}

// drillable refuses a destination that a drill would learn nothing from, or certainly harm.
func drillable(name string, c destinationConfig) error {
	switch {
	case c.Kafka != nil:
		return usagef("destination %s is a Kafka cluster: it takes every repeat and keeps no answer to compare; look at what its consumers do with the header id", name)
	case c.Stdout != nil:
		return usagef("destination %s is the standard output, which answers nothing", name)
	case c.dedupe().Never:
		return usagef("destination %s says dedupe: never, so a drill would do the work twice and show nothing new", name)
	}
	return nil
}

// sendAll sends the messages one after the other, no faster than the destination's rate, and ends early where nothing goes
// out any more.
func (d *drill) sendAll(ctx context.Context, messages []sentOnce) (told dialect.Drill, list []comparison, err error) {
	told.Destination = d.to.Name
	pace := pacing.NewLimiter(pacing.Inf, 1)
	if d.to.Rate > 0 {
		pace.SetLimit(pacing.Limit(d.to.Rate))
	}
	for _, m := range messages {
		if err := pace.Wait(ctx); err != nil {
			return told, list, context.Cause(ctx)
		}
		o := d.send(ctx, m)
		if o.Kind == relay.KindUnsent {
			return told, list, failf(exitDestination, "destination %s cannot be reached: %s: %s; try outboxd dest test %[1]s", d.to.Name, o.Class, o.Err)
		}
		c := m.compare(o)
		told.Sent++
		switch c.Verdict {
		case agrees:
			told.Agreed++
			if c.Now == "" {
				told.Silent++
			}
		case differs:
			told.Differed++
		case unanswered:
			told.Unanswered++
		}
		list = append(list, c)
	}
	return told, list, nil
}

// send makes one try, within the time-out that the relay would give it.
func (d *drill) send(ctx context.Context, m sentOnce) relay.Outcome {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	return d.to.Sink.Send(ctx, &m.Message)
}

// drillWords is a drill in one line.
func drillWords(told dialect.Drill) string {
	words := []string{
		fmt.Sprintf("sent again %d", told.Sent), fmt.Sprintf("agree %d", told.Agreed),
		fmt.Sprintf("differ %d", told.Differed), fmt.Sprintf("unanswered %d", told.Unanswered),
	}
	if told.Silent > 0 {
		words[1] += fmt.Sprintf(" (%d of them said nothing that could differ)", told.Silent)
	}
	return strings.Join(words, " · ")
}

func drillError(told dialect.Drill) error {
	switch {
	case told.Differed > 0:
		return failf(exitUnexpected, "%d of %d repeats were not answered as the first send was: the receiver may have done the work twice, or refuses what it has done already",
			told.Differed, told.Sent)
	case told.Unanswered > 0:
		return failf(exitPartly, "%d of %d repeats got no answer that tells: try again later", told.Unanswered, told.Sent)
	}
	return nil
}
