package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/dialect"
)

// physician is an engine that looks at itself.
type physician interface {
	Diagnose(ctx context.Context, older time.Duration) []dialect.Finding
	DiagnoseApplication(ctx context.Context) []dialect.Finding
}

// heldLong is how old a transaction may be that is nothing to speak of.
const heldLong = 5 * time.Minute

func (p *program) doctorCommand() *cobra.Command {
	var (
		out         output
		older       time.Duration
		application secretSource
	)
	cmd := &cobra.Command{
		Use: "doctor", Short: "Look for what goes wrong in practice, and name the mend of each", Args: noArgs(),
		Long: "doctor looks at database, tables, relays and configuration, and changes nothing: it writes one message and rolls it\n" +
			"back. It connects as the relays do. Given the database URL of the application, it looks at its rights too.\n" +
			"Exit: 0, or 1 with a fault; warnings alone leave it 0.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			if application.given() > 1 {
				return usagef("give one of --application-url-file and --application-url-env")
			}
			l, err := p.load()
			if err != nil {
				return err
			}
			findings, err := p.examine(cmd.Context(), l, application, older)
			if err != nil {
				return err
			}
			if out.format == "table" {
				err = printFindings(p.stdout, findings)
			} else {
				err = rows(p.stdout, out, findings)
			}
			if err != nil {
				return err
			}
			if n := countOf(findings, dialect.VerdictFault); n > 0 {
				return failf(exitUnexpected, "%s, %s", counted(n, "fault"), counted(countOf(findings, dialect.VerdictWarning), "warning"))
			}
			return nil
		},
	}
	out.flag(cmd)
	cmd.Flags().DurationVar(&older, "older", heldLong, "name transactions that have been open for longer")
	cmd.Flags().StringVar(&application.file, "application-url-file", "", "`file` with the database URL of the application")
	cmd.Flags().StringVar(&application.env, "application-url-env", "", "environment `variable` with it")
	return cmd
}

// examine puts together what is found, in the order in which one thing rests on the other.
func (p *program) examine(ctx context.Context, l *loaded, application secretSource, older time.Duration) ([]dialect.Finding, error) {
	findings := foundConfiguration(l)
	db, err := l.openDatabase(p.env)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	findings = append(findings, db.Diagnose(ctx, older)...)
	if !slices.ContainsFunc(findings, unusable) {
		findings = append(findings, foundRelays(ctx, db, l.config)...)
	}
	if application.given() == 0 {
		return findings, nil
	}
	o, err := l.databaseOptions(p.env)
	if err != nil {
		return nil, failf(exitConfiguration, "database URL: %w", err)
	}
	url, err := application.read(p.env)
	if err != nil {
		return nil, usagef("the application's database URL: %s", err)
	}
	o.URL = url.Reveal()
	theirs, err := openEngine(o)
	if err != nil {
		return nil, usagef("the application's database URL: %s", err)
	}
	defer theirs.Close()
	return append(findings, theirs.DiagnoseApplication(ctx)...), nil
}

// unusable tells of what leaves nothing to read in the tables.
func unusable(f dialect.Finding) bool {
	return f.Verdict == dialect.VerdictFault && slices.Contains([]string{"server", "file", "schema", "tables"}, f.Check)
}

func countOf(findings []dialect.Finding, v dialect.Verdict) (n int) {
	for _, f := range findings {
		if f.Verdict == v {
			n++
		}
	}
	return n
}

// printFindings prints each in a line, and its mend in another.
func printFindings(w io.Writer, findings []dialect.Finding) error {
	for _, f := range findings {
		if _, err := fmt.Fprintf(w, "%-8s %s: %s\n", f.Verdict, f.Check, harmless(strings.Join(strings.Fields(f.What), " "))); err != nil {
			return err
		}
		if f.Mend != "" {
			fmt.Fprintf(w, "%-8s mend: %s\n", "", harmless(strings.Join(strings.Fields(f.Mend), " ")))
		}
	}
	return nil
}
