package main

import (
	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/dialect"
)

func (p *program) operationsCommand() *cobra.Command {
	var (
		out   output
		open  bool
		limit int
	)
	cmd := &cobra.Command{
		Use: "operations", Short: "List what operators asked for, and what came of it, the last one first", Args: noArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			if limit < 1 || limit > 1000 {
				return usagef("--limit wants 1 to 1000")
			}
			db, err := p.open()
			if err != nil {
				return err
			}
			defer db.Close()
			found, err := db.Asked(cmd.Context(), open, limit)
			if err != nil {
				return err
			}
			if out.format == "table" {
				return rows(p.stdout, out, operationRows(found))
			}
			return rows(p.stdout, out, found)
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "only those that are not applied yet")
	cmd.Flags().IntVar(&limit, "limit", 20, "at most so many operations, 1 to 1000")
	out.flag(cmd)
	return cmd
}

// operationRow is an operation in a table: what fits a screen.
type operationRow struct {
	ID          string        `json:"id"`
	Op          string        `json:"op"`
	DryRun      bool          `json:"dry_run"`
	Filter      string        `json:"filter"`
	Actor       string        `json:"actor"`
	Note        *string       `json:"note"`
	RequestedAt dialect.Time  `json:"requested_at"`
	AppliedAt   *dialect.Time `json:"applied_at"`
	Affected    *int64        `json:"affected"`
	Detail      *string       `json:"detail"`
}

func operationRows(found []dialect.Operation) []operationRow {
	out := make([]operationRow, 0, len(found))
	for _, o := range found {
		out = append(out, operationRow{
			o.ID, o.Op, o.DryRun, o.Filter, o.Actor, o.Note, o.RequestedAt, o.AppliedAt, o.Affected, o.Detail,
		})
	}
	return out
}
