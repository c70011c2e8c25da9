package integration

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// scraped are the labels of each metric in a scrape; those of a histogram are there under their own names too.
type scraped map[string]map[string]bool

var (
	sample = regexp.MustCompile(`(?m)^(outboxd_[a-z_]+)(?:\{(.*)\})? `)
	label  = regexp.MustCompile(`([a-z_]+)="`)
	named  = regexp.MustCompile(`\b(outboxd_[a-z_]+)(?:\{([^}]*)\})?`)
	asked  = regexp.MustCompile(`([a-z_]+) *(?:=~|!~|!=|=)`)
	groups = regexp.MustCompile(`\b(?:by|on) \(([a-z_, ]+)\)`)
)

func scrapedFrom(text string) scraped {
	all := scraped{}
	for _, line := range sample.FindAllStringSubmatch(text, -1) {
		if all[line[1]] == nil {
			all[line[1]] = map[string]bool{}
		}
		for _, l := range label.FindAllStringSubmatch(line[2], -1) {
			all[line[1]][l[1]] = true
		}
	}
	return all
}

// addedLabels come of the scrape, or of several outboxes in one process.
func addedLabels() []string { return []string{"job", "namespace", "instance", "pod", "outbox"} }

// lacks says what an expression asks for and the scrape has not: a metric, or a label of the one that the label stands at. One
// that it groups by has to be of some metric in it.
func (s scraped) lacks(expr string) (missing []string) {
	all := map[string]bool{}
	for _, added := range addedLabels() {
		all[added] = true
	}
	for _, m := range named.FindAllStringSubmatch(expr, -1) {
		labels, there := s[m[1]]
		if !there {
			missing = append(missing, m[1])
			continue
		}
		for l := range labels {
			all[l] = true
		}
		for _, l := range asked.FindAllStringSubmatch(m[2], -1) {
			if !labels[l[1]] && !slices.Contains(addedLabels(), l[1]) {
				missing = append(missing, m[1]+"{"+l[1]+"}")
			}
		}
	}
	for _, g := range groups.FindAllStringSubmatch(expr, -1) {
		for l := range strings.SplitSeq(g[1], ",") {
			if l = strings.TrimSpace(l); !all[l] {
				missing = append(missing, "label "+l)
			}
		}
	}
	return missing
}

// TestWatchedMetrics: every metric that an alert or the dashboard names is in the scrape of a relay that has worked a little,
// with the labels that are asked for.
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
	eventually(t, patience, func() error {
		_, text := ask(t, p.address(t), "/metrics")
		found := scrapedFrom(text)
		for _, expr := range expressions {
			if missing := found.lacks(expr); len(missing) > 0 {
				return fmt.Errorf("the scrape lacks %s, of %s", strings.Join(missing, ", "), expr)
			}
		}
		return nil
	})
}
