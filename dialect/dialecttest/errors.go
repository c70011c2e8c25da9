package dialecttest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// groupsOf tells each group in a line.
func groupsOf(t *testing.T, db DB, f relay.Filter) (lines []string, found dialect.Errors) {
	t.Helper()
	found, err := db.Errors(t.Context(), f)
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	text := func(s *string) string {
		if s == nil {
			return "-"
		}
		return *s
	}
	for _, g := range found.Groups {
		lines = append(lines, fmt.Sprintf("%s %s %s %v %s %s %q %d %v", g.State, g.RoutingKey, g.Type, g.SchemaVersions, text(g.Reason),
			text(g.ErrorClass), g.Error, g.Messages, g.More))
	}
	slices.Sort(lines)
	return lines, found
}

// What is pending after a send that went wrong, and what failed and nobody has resolved; nothing else.
func testErrors(t *testing.T, _ Backend, db DB) {
	got, found := groupsOf(t, db, relay.Filter{})
	want := []string{`failed orders paid [1] rejected http_4xx "…" 1 false`, `pending orders paid [1] - http_5xx "…" 1 false`}
	if !slices.Equal(got, want) || found.FailedMore || found.PendingMore || found.KeysMore {
		t.Errorf("%+v: %q, want %q", found, got, want)
	}
}

func testErrorsOfFilter(t *testing.T, _ Backend, db DB) {
	hour := time.Now().Add(-30 * time.Minute)
	for want, filters := range map[string][]relay.Filter{
		"failed": {
			{State: "failed"}, {Reason: "rejected"}, {ErrorClass: "http_4xx"}, {Key: "8"}, {State: "failed", Since: &hour},
		},
		"pending":        {{State: "pending"}, {ErrorClass: "http_5xx", Type: "paid"}, {Key: "4"}, {State: "pending", RoutingKey: "orders"}},
		"failed pending": {{RoutingKey: "orders"}, {Type: "paid"}, {SchemaVersion: 1}},
		"": {
			{State: "done"},
			{State: "in_flight"},
			{RoutingKey: "mail"},
			{RoutingKey: "ORDERS"},
			{Type: "x"},
			{SchemaVersion: 2},
			{Until: &hour},
			{ErrorClass: "no_policy"},
			{Reason: "cancelled"},
		},
	} {
		for _, f := range filters {
			lines, _ := groupsOf(t, db, f)
			var states []string
			for _, line := range lines {
				state, _, _ := strings.Cut(line, " ")
				states = append(states, state)
			}
			if got := strings.Join(states, " "); got != want {
				t.Errorf("%+v: %s, want %s", f, got, want)
			}
		}
	}
	if _, err := db.Errors(t.Context(), relay.Filter{State: "dead"}); !errors.Is(err, dialect.ErrFilter) {
		t.Errorf("a state that is none: %v", err)
	}
}

// Messages whose errors differ in numbers and names alone are one group, with the last of them as its sample.
func testErrorsAreGrouped(t *testing.T, b Backend) {
	f := b.Forms()
	failed := func(version int, class, text string, ago time.Duration) {
		many(t, b, 2, "type, schema_version, state, due_at, failed_at, reason, error_class, last_error", fmt.Sprintf(
			"'charge', %d, 'failed', %s, %s, 'exhausted', '%s', '%s'", version, f.Never, f.Plus(f.Now, -ago), class, text))
	}
	failed(2, "refused", "connection to 10.0.0.3:4432 refused after 12ms", time.Hour)
	failed(1, "refused", "connection to 10.0.0.17:5 refused after 1.5ms", 2*time.Hour)
	failed(1, "timeout", "connection to 10.0.0.17:5 refused after 1.5ms", 2*time.Hour)
	failed(1, "refused", "no broker", 3*time.Hour)
	many(t, b, 1, "type, state, due_at, failed_at, reason", "'bare', 'failed', "+f.Never+", "+f.Now+", 'unknown'")
	many(t, b, 3, "type, lapses, due_at, error_class, last_error", "'charge', 1, "+f.Plus(f.Now, time.Hour)+", 'refused', 'connection to 10.0.0.3:1 refused after 2ms'")
	many(t, b, 1, "type, due_at, error_class, last_error", "'charge', "+f.Plus(f.Now, -time.Hour)+", 'refused', 'connection to 10.0.0.9:1 refused after 2ms'")
	db := b.Open()
	got, found := groupsOf(t, db, relay.Filter{})
	want := []string{
		`failed bare bare [1] unknown - "" 1 false`,
		`failed charge charge [1 2] exhausted refused "connection to … refused after …ms" 4 false`,
		`failed charge charge [1] exhausted refused "no broker" 2 false`,
		`failed charge charge [1] exhausted timeout "connection to … refused after …ms" 2 false`,
		`pending charge charge [1] - refused "connection to … refused after …ms" 4 false`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if g := found.Groups[0]; g.State == "failed" {
		if age := time.Since(g.LastAt.Time); g.LastAt.Sub(g.FirstAt.Time) != time.Hour || age < time.Hour || age > 2*time.Hour {
			t.Errorf("from %s to %s", g.FirstAt, g.LastAt)
		}
	}
	for _, g := range found.Groups {
		m, _, err := db.Get(t.Context(), g.SampleID)
		if err != nil || m.Type != g.Type || m.State != g.State || m.LastError != nil && dialect.Fingerprint(*m.LastError) != g.Error {
			t.Errorf("the sample of %+v is %+v, %v", g, m, err)
		}
	}
}

// What is looked at is bounded, and the answer says so: the last failed ones; of pending ones those that have been due for
// the longest time, those that came due last, and those whose next try comes first. A few behind a great many are found at
// either end.
func testErrorsAreBounded(t *testing.T, b Backend) {
	f := b.Forms()
	const edge = dialect.CountBound + 5
	broken := func(n int, kind, due string) {
		many(t, b, n, "type, aggregatetype, due_at, error_class, last_error", fmt.Sprintf("'%s', 'orders', %s, 'http_5xx', 'HTTP 503'", kind, due))
	}
	many(t, b, 3*edge, "type, aggregatetype, due_at", "'new', 'orders', "+f.Plus(f.Now, -time.Hour))
	broken(2, "oldest", f.Plus(f.Now, -2*time.Hour))
	broken(3, "newest", f.Plus(f.Now, -time.Minute))
	broken(4, "next", f.Plus(f.Now, time.Hour))
	many(t, b, edge, "type, state, due_at, failed_at, reason, error_class, last_error", "'a', 'failed', "+f.Never+", "+f.Plus(f.Now, -time.Hour)+", 'exhausted', 'http_5xx', 'HTTP 503'")
	execute(t, b, f.Analyze)
	got, found := groupsOf(t, b.Open(), relay.Filter{})
	want := []string{
		`failed a a [1] exhausted http_5xx "HTTP 503" 10000 true`,
		`pending orders newest [1] - http_5xx "HTTP 503" 3 true`,
		`pending orders next [1] - http_5xx "HTTP 503" 4 true`,
		`pending orders oldest [1] - http_5xx "HTTP 503" 2 true`,
	}
	if !slices.Equal(got, want) || !found.FailedMore || !found.PendingMore || found.KeysMore {
		t.Errorf("%+v: %q, want %q", found, got, want)
	}
	if lines, found := groupsOf(t, b.Open(), relay.Filter{Type: "new"}); len(lines) != 0 || !found.PendingMore {
		t.Errorf("nothing went wrong with these: %q, and more pending ones: %v", lines, found.PendingMore)
	}
}
