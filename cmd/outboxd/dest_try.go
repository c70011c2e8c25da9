package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/sink/kafka"
)

const destinationTest = time.Minute // how long a test may take

func (p *program) destTestCommand() *cobra.Command {
	return &cobra.Command{
		Use: "test NAME", Short: "Try address, connection, TLS and login of a destination, and send nothing", Args: exactArgs(1, "the name of one destination"),
		Long: "test tells each step in a line: ok, or failed and what to do about it. A webhook gets an OPTIONS request and never a\n" +
			"POST, a Kafka cluster no record, a program is not started. It needs no database. Exit 0 if all is well, 7 if a step\n" +
			"failed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := p.load()
			if err != nil {
				return err
			}
			d, err := l.config.destination(args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), destinationTest)
			defer cancel()
			s := &steps{p: p}
			if err := l.testDestination(ctx, args[0], d, p, s.told); err != nil {
				return err
			}
			if s.failed > 0 {
				return failf(exitDestination, "destination %s: %d of %d steps failed", args[0], s.failed, s.all)
			}
			return nil
		},
	}
}

// tester is a sink that can try its destination without sending a message.
type tester interface {
	Test(ctx context.Context, told func(step, words string, err error))
}

// testDestination tries a destination. An error is a mistake of the configuration.
func (l *loaded) testDestination(ctx context.Context, name string, d destinationConfig, p *program, told func(step, words string, err error)) error {
	if d.Kafka != nil {
		c := d.Kafka.sink()
		if s := d.Kafka.SASL; s != nil {
			password, err := s.source().read(p.env)
			if err != nil {
				return failf(exitConfiguration, "destination %s: password: %w", name, err)
			}
			c.SASL.Password = password.Reveal()
		}
		kafka.Test(ctx, c, told)
		return nil
	}
	sink, err := l.sink(name, parts{env: p.env, out: io.Discard, log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if it, ok := sink.(tester); ok {
		it.Test(ctx, mended(told))
	} else {
		told("standard output", "there is nothing to test", nil)
	}
	return closeSinks(relay.Config{Destinations: []relay.Destination{{Name: name, Sink: sink}}})
}

// mended adds to a step of a webhook's test that failed where to look.
func mended(told func(step, words string, err error)) func(step, words string, err error) {
	waits := regexp.MustCompile(`answered HTTP (429|5\d\d)\b`) // the words of the token step
	look := map[string]string{
		"address":    "check the host in url, and the names that this host can resolve",
		"connection": "check host and port in url, and what stands between",
		"tls":        "check tls.ca_file and tls.server_name, and the receiver's certificate",
		"token":      "check oauth2",
		"options":    "check bearer, basic or oauth2, and what the receiver wants",
	}
	return func(step, words string, err error) {
		mend := look[step]
		if step == "token" && err != nil && waits.MatchString(err.Error()) {
			mend = "that is no mistake in oauth2: wait, and try again"
		}
		if err != nil && mend != "" {
			err = fmt.Errorf("%w; %s", err, mend)
		}
		told(step, words, err)
	}
}
