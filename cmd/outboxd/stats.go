package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

func (p *program) statsCommand() *cobra.Command {
	var (
		out      output
		by       string
		interval time.Duration
		limit    int
	)
	cmd := &cobra.Command{
		Use: "stats", Short: "Show what went through lately: how much, with which outcomes, and how long it took", Args: noArgs(),
		Long: "stats counts the messages that were created within the interval, by what they came to, and the sends that began within it\n" +
			"and were not done. It reads the newest ones, a bounded number, and says so where that does not reach back as far.\n" +
			"MEDIAN and P95 are from INSERT to done. For the same by minute see outboxd audit throughput.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			if !slices.Contains([]string{"type", "destination", "routing_key"}, by) {
				return usagef("--by wants type, destination or routing_key")
			}
			if limit < 1 || limit > 1_000_000 || interval <= 0 {
				return usagef("--limit wants 1 to 1000000, and --interval more than 0")
			}
			l, err := p.load()
			if err != nil {
				return err
			}
			if by == "destination" && len(l.config.Routes) == 0 {
				return usagef("--by destination wants the configuration: name its file with -c")
			}
			db, err := l.openDatabase(p.env)
			if err != nil {
				return err
			}
			defer db.Close()
			flow, err := db.Flow(cmd.Context(), limit)
			if err != nil {
				return err
			}
			span := lookedBack(flow, interval, limit)
			if span < interval {
				fmt.Fprintf(p.stderr, "only the newest %d were looked at: they reach back %s; --limit looks at more\n", limit, dialect.Age(span))
			}
			list := statsOf(flow, span, nameBy(by, l.config.Routes))
			if out.format == "table" {
				return rows(p.stdout, out, statsRows(list))
			}
			return rows(p.stdout, out, list)
		},
	}
	cmd.Flags().StringVar(&by, "by", "type", "`what` to tell apart: type, destination or routing_key")
	cmd.Flags().DurationVar(&interval, "interval", time.Hour, "how far to look back")
	cmd.Flags().IntVar(&limit, "limit", dialect.CountBound, "look at so many messages and sends at most, up to 1000000")
	out.flag(cmd)
	return cmd
}

// nameBy says under which name a message counts.
func nameBy(by string, routes []routeConfig) func(routingKey, kind string) string {
	return func(routingKey, kind string) string {
		switch by {
		case "destination":
			return cmp.Or(destinationOf(routes, routingKey), "-")
		case "routing_key":
			return cmp.Or(routingKey, "-")
		}
		return cmp.Or(kind, "-")
	}
}

// lookedBack is how far back everything was looked at: the interval, or less where there was more than the limit.
func lookedBack(f dialect.Flow, interval time.Duration, limit int) time.Duration {
	if n := len(f.Messages); n == limit {
		interval = min(interval, time.Duration(f.Messages[n-1].Age))
	}
	if n := len(f.Sends); n == limit {
		interval = min(interval, time.Duration(f.Sends[n-1].Age))
	}
	return max(interval, time.Millisecond)
}

// flowStats are the figures of one name.
type flowStats struct {
	Name     string         `json:"name"`
	Created  int            `json:"created"`
	Done     int            `json:"done"`
	Failed   int            `json:"failed"`
	Waiting  int            `json:"waiting"` // pending or in flight
	Rate     float64        `json:"created_per_second"`
	Median   *dialect.Age   `json:"median"` // from INSERT to done; nil: none is done
	P95      *dialect.Age   `json:"p95"`
	Outcomes map[string]int `json:"outcomes"` // of sends that were not done

	took []dialect.Age
}

// statsOf counts what is not older than a span. It is pure.
func statsOf(f dialect.Flow, span time.Duration, name func(routingKey, kind string) string) []flowStats {
	byName := map[string]*flowStats{}
	of := func(routingKey, kind string) *flowStats {
		n := name(routingKey, kind)
		if byName[n] == nil {
			byName[n] = &flowStats{Name: n, Outcomes: map[string]int{}}
		}
		return byName[n]
	}
	for _, m := range f.Messages {
		if time.Duration(m.Age) <= span {
			of(m.RoutingKey, m.Type).add(m)
		}
	}
	for _, s := range f.Sends {
		if time.Duration(s.Age) <= span {
			of(s.RoutingKey, s.Type).Outcomes[s.Outcome]++
		}
	}
	list := make([]flowStats, 0, len(byName))
	for _, n := range slices.Sorted(maps.Keys(byName)) {
		s := byName[n]
		s.Rate = float64(s.Created) / span.Seconds()
		slices.Sort(s.took)
		s.Median, s.P95 = percentile(s.took, 50), percentile(s.took, 95)
		list = append(list, *s)
	}
	slices.SortStableFunc(list, func(a, b flowStats) int { return cmp.Compare(b.Created, a.Created) })
	return list
}

func (s *flowStats) add(m dialect.Passed) {
	s.Created++
	switch relay.State(m.State) {
	case relay.Finished:
		s.Done++
	case relay.Failed:
		s.Failed++
	case relay.Pending, relay.InFlight:
		s.Waiting++
	}
	if m.Took != nil {
		s.took = append(s.took, *m.Took)
	}
}

// percentile is the smallest that so many of a hundred do not exceed; nil of nothing.
func percentile(sorted []dialect.Age, of int) *dialect.Age {
	if len(sorted) == 0 {
		return nil
	}
	return &sorted[(len(sorted)*of+99)/100-1]
}

// statsRow is a line of the table.
type statsRow struct {
	Name    string       `json:"name"`
	Created int          `json:"created"`
	Rate    string       `json:"per s"`
	Done    int          `json:"done"`
	Failed  int          `json:"failed"`
	Waiting int          `json:"waiting"`
	Median  *dialect.Age `json:"median"`
	P95     *dialect.Age `json:"p95"`
	Sends   string       `json:"sends not done"`
}

func statsRows(list []flowStats) []statsRow {
	out := make([]statsRow, 0, len(list))
	for _, s := range list {
		var sends []string
		for _, outcome := range slices.Sorted(maps.Keys(s.Outcomes)) {
			sends = append(sends, fmt.Sprintf("%d %s", s.Outcomes[outcome], outcome))
		}
		out = append(out, statsRow{
			s.Name, s.Created, fmt.Sprintf("%.2f", s.Rate), s.Done, s.Failed, s.Waiting, s.Median, s.P95, strings.Join(sends, ", "),
		})
	}
	return out
}
