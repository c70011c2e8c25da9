package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/dialect"
)

// auditor answers the shipped questions.
type auditor interface {
	Audits() ([]dialect.Audit, error)
	Audit(ctx context.Context, a dialect.Audit, id string) (dialect.Answer, error)
}

func (p *program) auditCommand() *cobra.Command {
	var (
		out      output
		id       string
		printSQL bool
	)
	cmd := &cobra.Command{
		Use: "audit [NAME]", Short: "Answer one of the shipped questions; without a name, list them",
		Long: "audit runs a query of sql/<database>/audit. None of them writes, and none reads the whole table. Tables cut\n" +
			"long texts; -o json and -o jsonl have all of them.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%s takes the name of one query, or none; see %s --help", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			if len(args) == 0 {
				return p.listAudits(out)
			}
			if id != "" && args[0] != dialect.AuditOfOne {
				return usagef("--id is for audit %s: the others tell of all messages", dialect.AuditOfOne)
			}
			db, err := p.open()
			if err != nil {
				return err
			}
			defer db.Close()
			audit, err := namedAudit(db, args[0])
			if err != nil {
				return err
			}
			if printSQL {
				fmt.Fprint(p.stdout, audit.SQL)
				return nil
			}
			return p.runAudit(cmd.Context(), db, out, audit, id)
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "the `message` that audit "+dialect.AuditOfOne+" is about; without it, the last one written about")
	cmd.Flags().BoolVar(&printSQL, "print", false, "print the SQL, for the database's own shell; it connects to nothing")
	out.flag(cmd)
	return cmd
}

// auditRow is what the list of audits shows of one.
type auditRow struct {
	Name     string `json:"name"`
	Question string `json:"question"`
}

// listAudits needs no database: every engine has the same questions.
func (p *program) listAudits(out output) error {
	audits, err := dialect.Audits(dialect.Postgres, func(text string) (string, error) { return text, nil })
	if err != nil {
		return err
	}
	list := make([]auditRow, 0, len(audits))
	for _, a := range audits {
		list = append(list, auditRow{a.Name, a.Question})
	}
	return rows(p.stdout, out, list)
}

func namedAudit(db auditor, name string) (dialect.Audit, error) {
	audits, err := db.Audits()
	if err != nil {
		return dialect.Audit{}, err
	}
	var names []string
	for _, a := range audits {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return dialect.Audit{}, usagef("no audit %q: %s", name, strings.Join(names, ", "))
}

func (p *program) runAudit(ctx context.Context, db database, out output, audit dialect.Audit, id string) error {
	answer, err := db.Audit(ctx, audit, id)
	if err != nil {
		return unknownID(err)
	}
	if id != "" && len(answer.Rows) == 0 {
		if _, _, err := db.Get(ctx, id); err != nil {
			return unknownID(err)
		}
		fmt.Fprintln(p.stderr, noSend)
	}
	if out.format == "table" {
		return printAnswer(p.stdout, answer)
	}
	list := make([]answerRow, 0, len(answer.Rows))
	for _, values := range answer.Rows {
		list = append(list, answerRow{answer.Columns, values})
	}
	return rows(p.stdout, out, list)
}

// unknownID makes an id that no message has an exit code of its own.
func unknownID(err error) error {
	if errors.Is(err, dialect.ErrNotFound) {
		return failf(exitNotFound, "%w", err)
	}
	return err
}

// answerRow is a row of an answer: an object with the columns' names, in their order.
type answerRow struct {
	columns []string
	values  []any
}

// MarshalJSON is part of json.Marshaler.
func (r answerRow) MarshalJSON() ([]byte, error) {
	fields := make([]string, 0, len(r.columns))
	for i, column := range r.columns {
		var value strings.Builder
		if err := printJSON(&value, r.values[i], ""); err != nil {
			return nil, err
		}
		fields = append(fields, strconv.Quote(column)+":"+value.String())
	}
	return []byte("{" + strings.Join(fields, ",") + "}"), nil
}

func printAnswer(w io.Writer, answer dialect.Answer) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, strings.ToUpper(strings.Join(answer.Columns, "\t")))
	for _, row := range answer.Rows {
		cells := make([]string, 0, len(row))
		for _, value := range row {
			cells = append(cells, answerCell(value))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

// cellRunes is how much of a text a table shows: an id, a time and most errors whole.
const cellRunes = 48

func answerCell(value any) string {
	switch v := value.(type) {
	case nil:
		return "-"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	text := []rune(cell(reflect.ValueOf(value)))
	if len(text) > cellRunes {
		text = append(text[:cellRunes-1], '…')
	}
	return string(text)
}
