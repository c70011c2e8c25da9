package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/dialect"
)

// maxEvidenceOperations is how many of the last operations evidence reads.
const maxEvidenceOperations = 1000

// evidence is a page for whoever reviews how commands are sent. Nothing in it is a payload or a secret.
type evidence struct {
	At         dialect.Time `json:"at"` // by the database's clock
	Version    string       `json:"version"`
	Instance   string       `json:"instance"`    // "" for none
	ConfigHash string       `json:"config_hash"` // as relays tell theirs
	Topics     []topic      `json:"topics"`
}

// topic is a question of a review, and what is known about it.
type topic struct {
	Title    string    `json:"title"`
	Findings []finding `json:"findings"`
}

// finding is one answer. Rests says what it was read from; of what is not known, what would tell.
type finding struct {
	Known bool   `json:"known"`
	Says  string `json:"says"`
	Rests string `json:"rests_on"`
}

func known(rests, format string, args ...any) finding {
	return finding{true, fmt.Sprintf(format, args...), rests}
}

func notKnown(rests, format string, args ...any) finding {
	return finding{false, "Not known: " + fmt.Sprintf(format, args...), rests}
}

// reviewed is all that evidence reads.
type reviewed struct {
	now        dialect.Time
	instance   string
	status     dialect.Status
	kinds      dialect.Kinds
	outcomes   []dialect.SendOutcome
	more       bool // there are sends before them
	operations []dialect.Operation
}

func (p *program) evidenceCommand() *cobra.Command {
	format := "markdown"
	cmd := &cobra.Command{
		Use: "evidence", Short: "Print a page for a review: what is known of repeats, outcomes, bounds, failures and versions", Args: noArgs(),
		Long: "evidence tells on one page, from the database and the configuration as they are now, what shows that repetition is safe\n" +
			"and that this configuration fits the messages that are there: drills and dedupe windows, outcomes by class, bounds and\n" +
			"jitter in force, terminal failures and who resolved which, versions. Each point says what it rests on, or that it is\n" +
			"not known. It reads a bounded number of rows, no payload and no secret.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "markdown" && format != "json" {
				return usagef("-o wants markdown or json")
			}
			l, db, err := p.connect()
			if err != nil {
				return err
			}
			defer db.Close()
			if err := l.wantsWork(); err != nil {
				return err
			}
			f, err := lookForEvidence(cmd.Context(), db)
			if err != nil {
				return err
			}
			e := l.evidence(f)
			if format == "json" {
				return printJSON(p.stdout, e, "  ")
			}
			return e.print(p.stdout)
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", format, "`format`: markdown or json")
	return cmd
}

func lookForEvidence(ctx context.Context, db database) (f reviewed, err error) {
	steps := []func() error{
		func() (err error) { f.now, _, err = db.Lease(ctx, 0); return err },
		func() (err error) { f.instance, err = db.Instance(ctx); return err },
		func() (err error) { f.status, err = db.Status(ctx); return err },
		func() (err error) { f.kinds, err = db.Kinds(ctx); return err },
		func() (err error) { f.outcomes, f.more, err = db.Outcomes(ctx); return err },
		func() (err error) { f.operations, err = db.Asked(ctx, false, maxEvidenceOperations); return err },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return f, err
		}
	}
	return f, nil
}

// evidence answers each question of a review.
func (l *loaded) evidence(f reviewed) evidence {
	return evidence{
		At: f.now, Version: builtFrom().Version, Instance: f.instance, ConfigHash: l.config.hash(),
		Topics: []topic{
			{"Duplicates", l.duplicates(f)},
			{"Classification", l.classification(f)},
			{"Bounds", l.bounds()},
			{"Terminal failures", failures(f)},
			{"Versions", l.versions(f)},
			{"Relays", l.whoSends(f)},
		},
	}
}

// print writes the page in Markdown.
func (e evidence) print(w io.Writer) error {
	var page strings.Builder
	instance := "none named"
	if e.Instance != "" {
		instance = marked(e.Instance)
	}
	fmt.Fprintf(&page, "# Evidence of outboxd\n\n%s · outboxd %s · instance: %s · configuration %s\n",
		e.At.Format(time.RFC3339), e.Version, instance, e.ConfigHash)
	for _, t := range e.Topics {
		fmt.Fprintf(&page, "\n## %s\n\n", t.Title)
		for _, p := range t.Findings {
			fmt.Fprintf(&page, "- %s *(%s)*\n", marked(p.Says), p.Rests)
		}
	}
	_, err := io.WriteString(w, page.String())
	return err
}

// marked keeps what people named from being read as Markdown, and in one line.
func marked(text string) string {
	text = harmless(strings.Join(strings.Fields(text), " "))
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "`", "\\`", "<", `\<`, "[", `\[`, "|", `\|`, "#", `\#`).Replace(text)
}
