package integration

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// scraped are the labels of each metric in a scrape, and their values. The series of a histogram have their own names.
type scraped map[string]map[string][]string

var (
	sample  = regexp.MustCompile(`(?m)^(outboxd_[a-z_]+)(?:\{(.*)\})? `)
	named   = regexp.MustCompile(`\b(outboxd_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher = regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)"([^"]*)"`) // in a scrape a label and its value
	groups  = regexp.MustCompile(`\b(?:by|on) \(([a-z_, ]+)\)`)
)

func scrapedFrom(text string) scraped {
	all := scraped{}
	for _, line := range sample.FindAllStringSubmatch(text, -1) {
		if all[line[1]] == nil {
			all[line[1]] = map[string][]string{}
		}
		for _, l := range matcher.FindAllStringSubmatch(line[2], -1) {
			all[line[1]][l[1]] = append(all[line[1]][l[1]], l[2])
		}
	}
	return all
}

// addedLabels come of the scrape, or of several outboxes in one process.
func addedLabels() []string { return []string{"job", "namespace", "instance", "pod", "outbox"} }

// lacks says what an expression asks for and the scrape has not: a metric, a label of it, a value of that. A label that it
// groups by has to be of some metric in it.
func (s scraped) lacks(expr string) (missing []string) {
	there := addedLabels()
	for _, m := range named.FindAllStringSubmatch(expr, -1) {
		if _, found := s[m[1]]; !found {
			missing = append(missing, m[1])
		}
		for label := range s[m[1]] {
			there = append(there, label)
		}
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			for value := range strings.SplitSeq(l[2], "|") {
				if !slices.Contains(addedLabels(), l[1]) && !slices.Contains(s[m[1]][l[1]], value) {
					missing = append(missing, fmt.Sprintf("%s{%s=%q}", m[1], l[1], value))
				}
			}
		}
	}
	for _, g := range groups.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(g[1], ",") {
			if label = strings.TrimSpace(label); !slices.Contains(there, label) {
				missing = append(missing, "label "+label)
			}
		}
	}
	return missing
}

// TestWatchedMetrics: every metric that an alert or the dashboard names is in the scrape of a relay that has worked a little,
// with the labels and values that are asked for.
func TestWatchedMetrics(t *testing.T) {
	t.Parallel()
	expressions := readDashboard(t).expressions()
	for _, a := range alerts(t) {
		expressions = append(expressions, a.Expr)
	}
	names := 0
	for _, expr := range expressions {
		names += len(named.FindAllString(expr, -1))
	}
	if names < len(expressions) {
		t.Fatalf("%d expressions name %d metrics", len(expressions), names)
	}
	db := postgresEngine().database(t)
	db.insert(t, 5, "order_paid")
	p := startRelay(t, "destinations: {screen: {stdout: {}}}\nroutes: [{match: order_paid, to: screen, types: {order_paid: {}}}]\n",
		append(db.env(), "OUTBOXD_LISTEN=127.0.0.1:0"))
	p.waitReady(t, http.StatusOK)
	found := scraped{}
	eventually(t, patience, func() error {
		_, text := ask(t, p.address(t), "/metrics")
		found = scrapedFrom(text)
		for _, expr := range expressions {
			if missing := found.lacks(expr); len(missing) > 0 {
				return fmt.Errorf("the scrape lacks %s, of %s", strings.Join(missing, ", "), expr)
			}
		}
		return nil
	})
	page := string(readFile(t, runbook+"OutboxdLoopStalled.md"))
	for _, loop := range found["outboxd_loop_last_tick_timestamp_seconds"]["loop"] {
		if !strings.Contains(page, "*"+loop+"*") {
			t.Errorf("OutboxdLoopStalled.md does not say what loop %s does", loop)
		}
	}
}
