package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// byCommands works through the night with outboxd alone.
func byCommands(t *testing.T, n *badNight) {
	reader, operator, corrector := command{n.reader}, command{n.operator}, command{n.corrector}
	eventually(t, patience, func() error {
		var groups []struct {
			State, Type    string
			SchemaVersions []int  `json:"schema_versions"`
			ErrorClass     string `json:"error_class"`
		}
		if err := json.Unmarshal([]byte(reader.run(t, "errors", "-o", "json")), &groups); err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			if g.Type == nightOrders && g.State == "failed" && g.ErrorClass == "http_5xx" && slices.Equal(g.SchemaVersions, []int{2}) {
				return nil
			}
		}
		return fmt.Errorf("outboxd errors finds %+v", groups)
	})
	if status := reader.run(t, "status"); !strings.Contains(status, "failed") {
		t.Errorf("the status says\n%s", status)
	}
	operator.run(t, "pause", "--type", nightOrders, "--schema-version", "2", "--indefinitely", "--note", "misspelt amount", "--yes", "--wait")
	n.expectPaused(t)

	corrector.run(t, "correct", "--type", nightOrders, "--schema-version", "2", "--jq", ".amount = .amont | del(.amont)",
		"--note", "amount was misspelt", "--yes", "--wait")
	operator.run(t, "resume", "--type", nightOrders, "--schema-version", "2", "--note", "amount is spelt right", "--yes", "--wait")

	n.restore()
	n.waitSent(t)
	operator.run(t, "replay", "--state", "failed", "--routing-key", nightCharges, "--note", "the provider is back", "--yes", "--wait")
	n.waitSent(t)
	operator.run(t, "resolve", "--state", "failed", "--reason", "rejected", "--note", "nobody wants newsletters any more", "--yes", "--wait")
	if groups := strings.TrimSpace(reader.run(t, "errors", "-o", "json")); groups != "[]" {
		t.Errorf("outboxd errors finds %s", groups)
	}
}

// command is a person at the command line, who has the URL of the database.
type command struct{ url string }

// run runs a command that has to succeed, and returns what it printed.
func (c command) run(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, code := outboxd(t, []string{"OUTBOXD_DATABASE_URL=" + c.url}, args...)
	if code != 0 {
		t.Fatalf("outboxd %s: exit code %d\n%s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}
