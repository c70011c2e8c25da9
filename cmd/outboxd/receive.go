package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/cmd/outboxd/receive"
)

const (
	receiverEnds = 5 * time.Second // how long its end waits for the answers that are under way
	comparing    = time.Minute     // how long a comparison with the database may take
)

// receiveOptions are the flags of receive.
type receiveOptions struct {
	receive.Options
	listen                 string
	secretFile, bearerFile string
	expect                 int
	db                     bool
	to                     string
}

func (p *program) receiveCommand() *cobra.Command {
	var o receiveOptions
	cmd := &cobra.Command{
		Use: "receive", Short: "Receive what a webhook sends, for trying things out, and tell what came of it", Args: noArgs(),
		Long: "receive answers POSTs on this machine as a good receiver does: the work is done once for each key, a repeat is\n" +
			"given the first answer, 409 while the first is at work, and 422 if its body is another one. It prints a line for\n" +
			"each request, shows its keys at GET /, and ends with a balance: exit 0 only if nothing is missing and nothing was\n" +
			"done twice.\n\n" +
			"The flags say how it behaves badly. So does a request's own URL: ?status=503&retry-after=2s, ?latency=200ms,\n" +
			"?cut=before, ?cut=after, ?hang=before, ?hang=after.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return p.receive(cmd.Context(), o)
		},
	}
	o.flags(cmd)
	return cmd
}

func (o *receiveOptions) flags(cmd *cobra.Command) {
	flags, b := cmd.Flags(), &o.Behaviour
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8080", "`address`; port 0 takes a free one")
	flags.StringVar(&o.KeyHeader, "key-header", "Idempotency-Key", "the header that has the key")
	flags.IntVar(&b.Status, "status", 0, "answer so; from 300 on, without doing the work")
	flags.DurationVar(&b.RetryAfter, "retry-after", 0, "what a --status of 300 or more asks for, such as 2s")
	flags.DurationVar(&b.Latency, "latency", 0, "how long the work takes, such as 200ms")
	flags.StringVar((*string)(&b.Cut), "cut", "", "close the connection without an answer, `before` or after the work")
	flags.StringVar((*string)(&b.Hang), "hang", "", "give no answer until the sender leaves, `before` or after the work")
	flags.Lookup("hang").NoOptDefVal = string(receive.Before)
	flags.IntVar(&o.Fail, "fail", 0, "only the first `n` requests get --status (503), --cut or --hang")
	flags.Float64Var(&o.FailRate, "fail-rate", 0, "only this `share` of the requests gets them, by chance, such as 0.1")
	flags.StringVar(&o.secretFile, "secret-file", "", "`file` of secrets of Standard Webhooks, one a line: what no one of them signed is answered 401")
	flags.StringVar(&o.bearerFile, "bearer-file", "", "`file` of the bearer token without which the answer is 401")
	flags.DurationVar(&o.Remember, "remember", 24*time.Hour, "how long a key is remembered; with 0 every repeat does the work again")
	flags.IntVar(&o.MaxKeys, "max-keys", 200_000, "how many keys are remembered: the oldest go first")
	flags.BoolVar(&o.Bodies, "body", false, "print the bodies too")
	flags.IntVar(&o.Count, "count", 0, "end after `n` effects")
	flags.IntVar(&o.expect, "expect", 0, "how many effects there should have been at the end")
	flags.BoolVar(&o.db, "db", false, "compare with the messages in the database at the end")
	flags.StringVar(&o.to, "to", "", "with --db, compare only those that the configuration sends to this `destination`")
}

func (o *receiveOptions) check(cmd *cobra.Command) error {
	flags := cmd.Flags()
	err := o.Behaviour.Check()
	switch {
	case err != nil:
		return usagef("--%w", err)
	case o.Fail < 0 || o.Count < 0 || o.expect < 0:
		return usagef("--fail, --count and --expect want 0 or more")
	case o.FailRate < 0 || o.FailRate > 1:
		return usagef("--fail-rate wants 0 to 1, such as 0.1")
	case o.Remember < 0 || o.MaxKeys < 1:
		return usagef("--remember wants 0 or more, --max-keys 1 or more")
	case o.to != "" && !o.db:
		return usagef("--to goes with --db")
	case o.KeyHeader == "":
		return usagef("--key-header wants a name")
	}
	if flags.Changed("secret-file") {
		text, err := secretSource{file: o.secretFile}.read(nil)
		if err != nil {
			return usagef("--secret-file: %w", err)
		}
		if o.Secrets, err = receive.ParseSecrets(text.Reveal()); err != nil {
			return usagef("--secret-file: %s: %w", o.secretFile, err)
		}
	}
	if flags.Changed("bearer-file") {
		text, err := secretSource{file: o.bearerFile}.read(nil)
		if err != nil {
			return usagef("--bearer-file: %w", err)
		}
		o.Bearer = text.Reveal()
	}
	return nil
}

// receive is the life of a receiver, and its balance.
func (p *program) receive(ctx context.Context, o receiveOptions) error {
	var expected *expectation
	if o.db {
		var err error
		if expected, err = p.expectMessages(o.to); err != nil {
			return err
		}
		defer expected.db.Close()
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return usagef("--listen: the address %s cannot be had: %w", o.listen, errors.Unwrap(err))
	}
	work, enough := context.WithCancel(ctx)
	defer enough()
	o.Out, o.Enough = p.stdout, enough
	r := receive.New(o.Options)
	server := &http.Server{
		Handler: r, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	fmt.Fprintf(p.stderr, "listening on http://%s/; end with Ctrl-C\n", listener.Addr())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // it ends by the lines below only
	}()
	<-work.Done()
	r.Close()
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), receiverEnds)
	defer cancel()
	_ = server.Shutdown(soon) // what is not answered by then is cut
	_ = server.Close()
	<-ended
	return p.balance(context.WithoutCancel(ctx), r, o, expected)
}

// balance prints what was counted, and fails where something is missing or was done twice.
func (p *program) balance(ctx context.Context, r *receive.Receiver, o receiveOptions, expected *expectation) error {
	t := r.Tally()
	fmt.Fprintln(p.stdout, t)
	if t.Forgotten > 0 {
		fmt.Fprintf(p.stderr, "%d keys were forgotten, as there were more than --max-keys %d\n", t.Forgotten, o.MaxKeys)
	}
	var wrong []string
	if t.Doubled > 0 {
		wrong = append(wrong, fmt.Sprintf("the work was done more than once for this many keys: %d", t.Doubled))
	}
	switch {
	case t.Effects < o.expect:
		wrong = append(wrong, fmt.Sprintf("%d of the %d effects that were expected are missing", o.expect-t.Effects, o.expect))
	case o.expect > 0 && t.Effects > o.expect:
		wrong = append(wrong, fmt.Sprintf("there are %d effects, and %d were expected", t.Effects, o.expect))
	}
	if expected != nil {
		ctx, cancel := context.WithTimeout(ctx, comparing)
		defer cancel()
		words, err := expected.compare(ctx, r, p.stdout)
		if err != nil {
			return err
		}
		wrong = append(wrong, words...)
	}
	if len(wrong) > 0 {
		return failf(exitUnexpected, "the balance does not hold: %s", strings.Join(wrong, "; "))
	}
	return nil
}
