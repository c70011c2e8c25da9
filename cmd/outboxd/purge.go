package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/relay"
)

// What purge does with the database, beside the relays' work.
const (
	purgePage     = 1000 // rows of a page
	estimatePages = 100  // pages that are looked at before a person is asked
	recordFor     = 5 * time.Second
)

// purge is what the command line asks for.
type purge struct {
	keep   relay.Retention
	limit  int     // rows at most; 0: all
	rate   float64 // rows a second; 0: as fast as goes beside the daily work
	note   string
	yes    bool
	dryRun bool
}

func (p *program) purgeCommand() *cobra.Command {
	var r purge
	cmd := &cobra.Command{
		Use: "purge", Short: "Remove now what retention would remove by and by, or sooner", Args: noArgs(),
		Long: "purge removes messages that are done or resolved, attempts, and applied operations once they are old enough, in small pages\n" +
			"beside the relays' work: by the configuration's retention, or by the flags. A failed message that nobody resolved stays.\n" +
			"It counts first, but no further than 100,000 rows of each, and asks. Who did it is written into outbox_operation.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range []string{"done-after", "resolved-after", "attempts-after", "operations-after"} {
				if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "0s" { // 0 is the configuration's
					return usagef("--%s wants a time above 0, such as 1s", name)
				}
			}
			return p.purge(cmd.Context(), r)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&r.keep.Done, "done-after", 0, "done messages go so long after they were done, such as 24h")
	flags.DurationVar(&r.keep.Resolved, "resolved-after", 0, "failed messages go so long after they were resolved")
	flags.DurationVar(&r.keep.Attempts, "attempts-after", 0, "attempts go so long after their end")
	flags.DurationVar(&r.keep.Operations, "operations-after", 0, "operations go so long after they were applied")
	flags.IntVar(&r.limit, "limit", 0, "remove at most so many rows")
	flags.Float64Var(&r.rate, "rate", 0, "remove so many rows a second")
	flags.StringVar(&r.note, "note", "", "why, for whoever looks later")
	flags.BoolVar(&r.yes, "yes", false, "ask no question")
	flags.BoolVar(&r.dryRun, "dry-run", false, "count what would go, and remove nothing")
	return cmd
}

func (p *program) purge(ctx context.Context, r purge) error {
	if r.limit < 0 || r.rate < 0 || min(r.keep.Done, r.keep.Resolved, r.keep.Attempts, r.keep.Operations) < 0 {
		return usagef("--limit, --rate and all times are above 0")
	}
	l, err := p.load()
	if err != nil {
		return err
	}
	r.keep = r.keep.Or(l.config.Retention.keep())
	db, err := l.openDatabase(p.env)
	if err != nil {
		return err
	}
	defer db.Close()
	store, err := db.Store("purge", l.config.Instance, relay.DefaultLease)
	if err != nil {
		return err
	}
	defer store.Close()

	counted := purging{remover: store, purge: r, dry: true, pages: estimatePages}
	if err := counted.run(ctx); err != nil {
		return err
	}
	fmt.Fprintf(p.stderr, "%s: %s\n", r.title(), counted.words())
	switch {
	case r.dryRun || counted.total == 0 && !counted.more:
		return nil
	case !r.yes:
		if err := p.confirm(); err != nil {
			return err
		}
	}
	shown := p.newProgress("removed so far", counted.expected())
	defer shown.end()
	doing := purging{remover: store, purge: r, shown: shown}
	err = doing.run(ctx)
	shown.end()
	fmt.Fprintf(p.stderr, "%s: removed %s\n", r.title(), doing.words())
	return cmp.Or(err, r.record(ctx, db, doing.total))
}

func (r purge) title() string {
	if r.dryRun {
		return "dry run: purge"
	}
	return "purge"
}

// record writes down who removed how much, also where a signal ended it.
func (r purge) record(ctx context.Context, db operator, total int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordFor)
	defer cancel()
	return db.Did(ctx, relay.OpPurge, map[string]any{
		"done": keepWords(r.keep.Done), "resolved": keepWords(r.keep.Resolved),
		"attempts": keepWords(r.keep.Attempts), "operations": keepWords(r.keep.Operations), "limit": r.limit,
	}, actor(), r.note, total)
}

// purging is a walk through all that may be old.
type purging struct {
	purge
	remover relay.Remover
	dry     bool
	pages   int // at most, of each kind; 0: all
	shown   *progress

	gone  [3]int // of kinds
	total int
	more  bool // there are more than were looked at
	began time.Time
}

// kinds are what goes, in the order in which it does.
func kinds() [3]relay.Kept {
	return [3]relay.Kept{relay.KeptMessages, relay.KeptAttempts, relay.KeptOperations}
}

func (w *purging) run(ctx context.Context) error {
	w.began = time.Now()
	for i, what := range kinds() {
		if err := w.walk(ctx, i, what); err != nil {
			return err
		}
	}
	return nil
}

// walk goes through one kind, page by page. Between pages it rests as long as they took, or longer by the rate.
func (w *purging) walk(ctx context.Context, kind int, what relay.Kept) error {
	after := ""
	for page := 0; ; page++ {
		most := purgePage
		if w.rate > 0 && !w.dry { // else a page of many would go at once, and then none for long
			most = max(1, min(most, int(w.rate)))
		}
		if left := w.limit - w.total; w.limit > 0 {
			most = min(most, left)
		}
		if w.more = w.more || w.pages > 0 && page == w.pages; most <= 0 || w.pages > 0 && page == w.pages {
			return nil
		}
		began := time.Now()
		removed, err := w.remover.Remove(ctx, relay.Removal{What: what, Keep: w.keep, After: after, Most: most, DryRun: w.dry})
		if err != nil {
			return err
		}
		w.gone[kind] += removed.Gone
		w.total += removed.Gone
		if w.shown != nil {
			w.shown.at(w.total)
		}
		if after = removed.Next; after == "" {
			return nil
		}
		if err := w.rest(ctx, time.Since(began)); err != nil {
			return err
		}
	}
}

func (w *purging) rest(ctx context.Context, took time.Duration) error {
	wait := took
	if w.dry {
		wait = 0
	}
	if w.rate > 0 && !w.dry {
		wait = max(wait, time.Duration(float64(w.total)/w.rate*float64(time.Second))-time.Since(w.began))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// expected is how many rows will go; 0: nobody knows.
func (w *purging) expected() int {
	if w.more {
		return 0
	}
	return w.total
}

func (w *purging) words() string {
	return fmt.Sprintf("%s%d messages, %d attempts, %d operations with their corrections", either(w.more, "at least ", ""), w.gone[0], w.gone[1], w.gone[2])
}
