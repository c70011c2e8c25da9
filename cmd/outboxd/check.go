package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/dialect"
)

// level is how bad something is: the exit code of a plug-in for Nagios, Icinga and the like.
type level int

const (
	levelOK level = iota
	levelWarning
	levelCritical
	levelUnknown
)

// String is the word for it.
func (l level) String() string {
	return [...]string{"ok", "warning", "critical", "unknown"}[l]
}

// MarshalJSON writes the word.
func (l level) MarshalJSON() ([]byte, error) { return json.Marshal(l.String()) }

// limits are what a check goes by. Durations of 0 and counts below 0 are no limit.
type limits struct {
	warnAge, maxAge           time.Duration
	warnFailed, maxFailed     int
	warnUnrouted, maxUnrouted int
	warnOpen, maxOpen         int
	warnPaused, maxPaused     int
	warnRelays, minRelays     int
}

// checkFormats are those in which a check can be told.
func checkFormats() []string { return []string{"nagios", "text", "json", "prometheus"} }

func (p *program) checkCommand() *cobra.Command {
	var (
		lim     limits
		format  string
		timeout time.Duration
	)
	cmd := &cobra.Command{
		Use: "check", Short: "Compare how the outbox is doing with limits, for monitoring: exit 0 ok, 1 warning, 2 critical, 3 unknown",
		Long: "check is a plug-in for Nagios, Icinga and whatever runs those. What cannot be looked at is unknown, so is a command line that\n" +
			"cannot be. With a configuration it also counts what has no route.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return failf(int(levelUnknown), "check takes no arguments; see outboxd check --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(checkFormats(), format) {
				return failf(int(levelUnknown), "--format wants %s", strings.Join(checkFormats(), ", "))
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			r, err := p.check(ctx, lim)
			if err != nil {
				r = checkReport{Level: levelUnknown, Problems: []string{p.withRole(cmd, err).Error()}}
			}
			if err := r.print(p.stdout, format); err != nil {
				return err
			}
			return told(int(r.Level))
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return failf(int(levelUnknown), "%s; see outboxd check --help", flagWords(err))
	})
	flags := cmd.Flags()
	flags.DurationVar(&lim.maxAge, "max-age", time.Minute, "critical: a message is due for longer and nobody takes it; 0: no limit")
	flags.DurationVar(&lim.warnAge, "warn-age", 0, "warning: the same")
	flags.IntVar(&lim.maxFailed, "max-failed", 0, "critical: more messages failed and are not resolved; -1: no limit")
	flags.IntVar(&lim.warnFailed, "warn-failed", -1, "warning: the same")
	flags.IntVar(&lim.maxUnrouted, "max-unrouted", 0, "critical: more messages have no route, or no policy takes their version")
	flags.IntVar(&lim.warnUnrouted, "warn-unrouted", -1, "warning: the same")
	flags.IntVar(&lim.maxOpen, "max-open", -1, "critical: more destinations are open: only a probe goes out now and then")
	flags.IntVar(&lim.warnOpen, "warn-open", 0, "warning: the same")
	flags.IntVar(&lim.maxPaused, "max-paused", -1, "critical: more is paused")
	flags.IntVar(&lim.warnPaused, "warn-paused", 0, "warning: the same")
	flags.IntVar(&lim.minRelays, "min-relays", 1, "critical: fewer relays are alive")
	flags.IntVar(&lim.warnRelays, "warn-relays", -1, "warning: the same")
	flags.StringVar(&format, "format", "nagios", "`format`: "+strings.Join(checkFormats(), ", "))
	flags.DurationVar(&timeout, "timeout", 10*time.Second, "unknown where there is no answer so long")
	return cmd
}

// check looks at the outbox.
func (p *program) check(ctx context.Context, lim limits) (checkReport, error) {
	l, db, err := p.connect()
	if err != nil {
		return checkReport{}, err
	}
	defer db.Close()
	status, err := db.Status(ctx)
	if err != nil {
		return checkReport{}, err
	}
	return judge(status, l.config.Routes, lim), nil
}

// judge compares a status with limits. It is pure.
func judge(s dialect.Status, routes []routeConfig, lim limits) checkReport {
	r := checkReport{Checks: checksOf(s, routes, lim), Problems: problemsOf(s, routes)}
	for _, c := range r.Checks {
		r.Level = max(r.Level, c.Level)
	}
	return r
}

// checksOf measures, and says of each figure how bad it is.
func checksOf(s dialect.Status, routes []routeConfig, lim limits) []check {
	alive := aliveOf(s.Relays)
	age := check{Name: "age", Unit: "s", What: "for which a message is due and nobody takes it", warn: lim.warnAge.Seconds(), crit: lim.maxAge.Seconds()}
	if lim.warnAge == 0 {
		age.warn = -1
	}
	if lim.maxAge == 0 {
		age.crit = -1
	}
	unrouted := newCountCheck("unrouted", "without a route or a policy", lim.warnUnrouted, lim.maxUnrouted)
	for _, w := range s.Waiting {
		if w.Why == dialect.Due {
			age.Value = max(age.Value, time.Duration(w.Oldest).Seconds())
		}
		if noRoute := len(routes) > 0 && destinationOf(routes, w.RoutingKey) == "" && w.Why != dialect.InFlight; noRoute || w.Why == dialect.NoPolicy {
			unrouted.add(w.Messages, w.More)
		}
	}
	failed := newCountCheck("failed", "failed and not resolved", lim.warnFailed, lim.maxFailed)
	for _, f := range s.Failed {
		failed.add(f.Messages, f.More)
	}
	open := newCountCheck("open", "destinations open", lim.warnOpen, lim.maxOpen)
	seen := map[string]bool{}
	for _, b := range s.Breakers {
		if _, there := alive[b.Relay]; there && b.State == "open" && !seen[b.Name] {
			seen[b.Name] = true
			open.add(1, false)
		}
	}
	paused := newCountCheck("paused", "paused", lim.warnPaused, lim.maxPaused)
	paused.add(len(s.Pauses), false)
	relays := newCountCheck("relays", "relays alive", lim.warnRelays, lim.minRelays)
	relays.below = true
	relays.add(len(alive)-len(foreign(s.Instance, alive)), false) // those of another instance send nothing
	list := []check{age, failed, unrouted, open, paused, relays}
	for i := range list {
		list[i].judge()
	}
	return list
}
