package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

func (p *program) initCommand() *cobra.Command {
	a := &answers{}
	var force bool
	cmd := &cobra.Command{
		Use: "init", Short: "Write a commented configuration, from a few questions or from flags", Args: noArgs(),
		Long: "init asks at a terminal for what the flags leave out. Elsewhere the flags have to say it. What it writes passes\n" +
			"outboxd config validate, once the files and variables are there that it names for secrets: no secret is asked for,\n" +
			"and none is written. A file that is there already is left alone without --force.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !force && a.output != "-" {
				if _, err := os.Lstat(a.output); err == nil {
					return thereAlready(a.output)
				}
			}
			a.given = cmd.Flags().Changed
			if err := a.complete(cmd.Context(), p); err != nil {
				return err
			}
			return p.writeAnswers(a, force)
		},
	}
	a.flags(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "write over a file that is there already")
	return cmd
}

func (a *answers) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&a.database, "database", "", "`kind`: postgres, mysql (MariaDB too) or sqlite")
	flags.StringVar(&a.urlFile, "url-file", "", "`file` that holds the database's URL")
	flags.StringVar(&a.urlEnv, "url-env", "", "`variable` that holds the database's URL")
	flags.StringVar(&a.destination, "destination", "", "`kind`: kafka, webhook or stdout")
	flags.StringVar(&a.brokers, "brokers", "", "Kafka: `host:port`, several separated by commas")
	flags.StringVar(&a.url, "url", "", "webhook: the `URL` that takes the POSTs")
	flags.StringVar(&a.dedupe, "dedupe", "", "webhook: `how long` it remembers an Idempotency-Key, such as 24h, or never")
	flags.StringVar(&a.ordered, "ordered", "", "`false`: messages of one aggregateid may overtake each other; a webhook's route has to say it")
	flags.StringVar(&a.auth, "auth", "", "webhook: bearer, basic, oauth2 or none, which is the default")
	flags.StringVar(&a.username, "username", "", "webhook with --auth basic: our `name`")
	flags.StringVar(&a.tokenURL, "token-url", "", "webhook with --auth oauth2: the `URL` that gives tokens")
	flags.StringVar(&a.clientID, "client-id", "", "webhook with --auth oauth2: our `name` there")
	flags.StringVar(&a.match, "match", "", "which routing keys go there: one, the start of one and *, or * for all, which is the default")
	flags.StringVar(&a.output, "output", "outboxd.yaml", "`file` to write, or - for the standard output")
}

// complete asks for what the flags leave out, and fails where nobody answers.
func (a *answers) complete(ctx context.Context, p *program) error {
	if err := a.checkFlags(); err != nil {
		return err
	}
	if len(a.missing()) > 0 && p.asksPerson() {
		fmt.Fprintln(p.stderr, "An empty answer takes what stands in brackets.")
		if err := a.ask(ctx, p.stdin, p.stderr); err != nil {
			return err
		}
	}
	if missing := a.missing(); len(missing) > 0 {
		return usagef("init needs %s; see outboxd init --help", strings.Join(missing, ", "))
	}
	a.fillIn()
	return a.checkWhole()
}

// asksPerson tells whether a person may be at the other end of the standard input.
func (p *program) asksPerson() bool {
	file, ok := p.stdin.(*os.File)
	if !ok || !isTerminal(file) {
		return false
	}
	here, err := file.Stat()
	nobody, nullErr := os.Stat(os.DevNull) // a character device as well
	return err == nil && (nullErr != nil || !os.SameFile(here, nobody))
}

func (p *program) writeAnswers(a *answers, force bool) error {
	if a.output == "-" {
		_, err := p.stdout.Write([]byte(a.text()))
		return err
	}
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := os.OpenFile(a.output, how, 0o644) //nolint:gosec // it holds no secret
	switch {
	case errors.Is(err, fs.ErrExist):
		return thereAlready(a.output)
	case err != nil:
		return usagef("--output: %w", fileError(err))
	}
	_, err = file.WriteString(a.text())
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	fmt.Fprintf(p.stderr, "%s is written.%s\n", a.output, a.next())
	return nil
}

func thereAlready(file string) error {
	return failf(exitNotAllowed, "%s is there already and was left alone: --force writes over it, --output names another file", file)
}
