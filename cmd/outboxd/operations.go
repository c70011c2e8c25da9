package main

import (
	"context"
	"errors"
	"strings"

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
		Use: "operations [ID…]", Short: "List what operators asked for, and what came of it, the last one first", Args: cobra.ArbitraryArgs,
		Long: "operations lists the last ones. Of those with these ids it also says why messages were left as they are; it exits with 4 if\n" +
			"one of them does not exist.",
		RunE: func(cmd *cobra.Command, ids []string) error {
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
			var (
				found   []dialect.Operation
				missing []string
			)
			if len(ids) == 0 {
				found, err = db.Asked(cmd.Context(), open, limit)
			} else {
				found, missing, err = operationsOf(cmd.Context(), db, ids)
			}
			switch {
			case err != nil:
				return err
			case out.format == "table":
				err = rows(p.stdout, out, operationRows(found))
				for _, o := range found[:min(len(ids), len(found))] {
					explainLeft(p.stdout, o)
				}
			default:
				err = rows(p.stdout, out, found)
			}
			if err == nil && len(missing) > 0 {
				err = failf(exitNotFound, "%s", strings.Join(missing, "; "))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "only those that are not applied yet")
	cmd.Flags().IntVar(&limit, "limit", 20, "at most so many operations, 1 to 1000")
	out.flag(cmd)
	return cmd
}

// operationsOf reads operations one by one. missing says of each that does not exist that it does not.
func operationsOf(ctx context.Context, db operator, ids []string) (found []dialect.Operation, missing []string, err error) {
	for _, id := range ids {
		o, err := db.Operation(ctx, id)
		if errors.Is(err, dialect.ErrNotFound) {
			missing = append(missing, err.Error())
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		found = append(found, o)
	}
	return found, missing, nil
}
